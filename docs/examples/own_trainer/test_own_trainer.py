"""The training is somebody else's; the claims and the gate are ours."""

from harness import Scenario, cards, hardware

ALONE = Scenario.command(["python", "train.py"], tokens_per_step=512)
UNDER_MSRUN = Scenario.command(
    [
        "msrun",
        "--worker_num=2",
        "--local_worker_num=2",
        # Ranks of any job listen from msrun's default port on, so another job on this machine may hold it.
        "--master_port=12118",
        "--join=True",
        "--log_dir={folder}/msrun",
        "train.py",
    ],
    output="msrun/worker_0.log",
    ranks=2,
    tokens_per_step=512,
)


@hardware("cpu")
def test_it_learns(trainer, gate):
    run = trainer.run(ALONE)
    assert run.curve("loss")[-1] < 0.8 * run.curve("loss")[0]
    gate.check(run, only=["loss", "grad_norm"])


@hardware("cpu")
@cards(2)
def test_two_ranks_train_what_one_does(trainer):
    one, two = trainer.run(ALONE), trainer.run(UNDER_MSRUN)
    assert all(abs(a - b) < 1e-4 for a, b in zip(one.curve("loss"), two.curve("loss"), strict=True))

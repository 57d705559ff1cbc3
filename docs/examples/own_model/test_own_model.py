"""Claims about it, and a gate."""

from harness import Checkpoints, Layout, Scenario, cards, hardware

OURS = Scenario(
    model="own_model:model",
    steps=30,
    batch=8,
    sequence=16,
    learning_rate=1e-2,
    eval_sequences=32,
    checkpoints=Checkpoints(every=10),
)


@hardware("cpu", "gpu", "ascend")
def test_it_learns(trainer, gate):
    run = trainer.run(OURS)
    assert run["validation_perplexity"] < 100
    gate.check(run, only=["loss", "grad_norm", "validation_perplexity", "parameters"])


@hardware("cpu", "gpu", "ascend")
def test_it_resumes_bit_for_bit(trainer):
    whole = trainer.run(OURS)
    trainer.run(OURS, until=20)
    assert trainer.run(OURS, resume=trainer.checkpoints).curves == whole.curves


@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_two_replicas_train_what_one_process_does(trainer):
    one, two = trainer.run(OURS), trainer.run(OURS.replace(layout=Layout(dp=2)))
    assert all(abs(a - b) < 1e-4 for a, b in zip(one.curve("loss"), two.curve("loss"), strict=True))

"""Claims about them, and a gate."""

from harness import Layout, Scenario, cards, hardware

OURS = Scenario(
    model="nano",
    data="own_step:data",
    step="own_step:step",
    mode="pynative",
    schedule="constant",
    steps=30,
    batch=16,
    sequence=32,
    learning_rate=0.5,
    eval_sequences=32,
)


@hardware("cpu", "gpu", "ascend")
def test_it_learns(trainer, gate):
    run = trainer.run(OURS)
    assert run.curve("loss")[-1] < 0.8 * run.curve("loss")[0]
    gate.check(run, only=["loss", "grad_norm", "learning_rate", "tokens_seen", "validation_perplexity"])


@hardware("cpu", "gpu", "ascend")
@cards(2)
def test_two_replicas_train_what_one_process_does(trainer):
    one, two = trainer.run(OURS), trainer.run(OURS.replace(layout=Layout(dp=2)))
    assert all(abs(a - b) < 1e-3 for a, b in zip(one.curve("loss"), two.curve("loss"), strict=True))
    assert two["diverged_replicas"] == 0
    assert two.curve("tokens_seen") == one.curve("tokens_seen")

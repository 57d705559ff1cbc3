"""What a trained model can be asked."""

import pytest

from fixtures.scenarios import PROSE
from harness import hardware
from harness.examination import Examination, examine
from harness.launch.code import Code
from harness.tasks import log
from harness.tasks.summary import scores
from harness.weights import FOLDER


@hardware("cpu", "gpu", "ascend")
def test_training_teaches_its_own_language_and_no_other(trainer, hardware):
    """Feature: tasks in English and Chinese, asked of a model after 10 steps of English prose and after 150.

    Expectation: of ten choices between an English ending and a garbled one, the trained model takes the English one
    nearly always, and more often than the untrained one. It never saw Chinese, so that its share is that of guessing,
    a half, to within three standard errors.
    """
    root = trainer.session.root
    paths = [root / "fixtures" / "tasks" / name for name in ("notices.jsonl", "endings.jsonl", "chinese.jsonl")]
    shares = []
    for steps in (10, PROSE.steps):
        trainer.run(PROSE.replace(steps=steps, samples=0, eval_sequences=0, keep_weights=True))
        folder = trainer.session.run_folder(trainer.keys[-1]) / FOLDER
        examine(folder, Examination(tuple(paths), hardware=hardware), Code(root))
        found = scores(log.read(folder / log.LOG).results)
        shares.append({setting.task: score.value for setting, score in found.items()})
    untrained, trained = shares
    assert trained["notices"] >= 0.9 > untrained["notices"]
    assert trained["endings"] > untrained["endings"]
    assert trained["chinese"] == pytest.approx(0.5, abs=3 * (0.25 / 6) ** 0.5)

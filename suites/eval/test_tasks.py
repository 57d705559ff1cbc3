"""What a trained model can be asked."""

import statistics

from fixtures.scenarios import PROSE
from harness import hardware, untimed
from harness.checkpoints.policy import Checkpoints
from harness.checkpoints.store import Store
from harness.examination import Examination, examine, log_beside
from harness.launch.code import Code
from harness.tasks import log
from harness.tasks.summary import scores
from harness.tasks.task import read

pytestmark = untimed


@hardware("cpu", "gpu", "ascend")
def test_training_teaches_its_own_language_and_no_other(trainer, hardware):
    """Feature: tasks in English and Chinese, asked of a model after 10 steps of English prose and after 150.

    Expectation: of ten choices between an English ending and a garbled one, the trained model takes the English one
    nearly always, and more often than the untrained one. It never saw Chinese: the bytes of right Chinese endings cost
    it more than twice the nats of English ones, and more than they cost the untrained model.
    """
    root = trainer.session.root
    paths = {name: root / "fixtures" / "tasks" / f"{name}.jsonl" for name in ("notices", "endings", "chinese")}
    shares, costs = [], []
    beginning = PROSE.replace(steps=10, samples=0, eval_sequences=0, checkpoints=Checkpoints(every=10))
    for scenario in (beginning, PROSE):
        trainer.run(scenario)
        folder = Store(trainer.checkpoints).path(scenario.steps)
        examine(folder, Examination(tuple(paths.values()), hardware=hardware), Code(root))
        results = log.read(log_beside(folder)).results
        shares.append({setting.task: score.value for setting, score in scores(results).items()})
        costs.append({name: nats(read(paths[name]), results) for name in ("notices", "chinese")})
    untrained, trained = shares
    assert trained["notices"] >= 0.9 > untrained["notices"]
    assert trained["endings"] > untrained["endings"]
    assert costs[1]["chinese"] > 2 * costs[1]["notices"]
    assert costs[1]["chinese"] > costs[0]["chinese"]


def nats(task, results):
    """Nats a byte of the right choices."""
    found = {result.sample: result.nll for result in results if result.setting.task == task.header.task}
    return statistics.mean(found[s.id][s.answer] / len(s.solution.encode()) for s in task.samples)

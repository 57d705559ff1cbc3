"""What our training step costs beside a bare hand-written MindSpore loop of the same model, in pairs.

    python benchmarks/step_overhead.py [steps]

The bare loop does the same training and nothing else: value_and_grad, clip_by_global_norm and nn.AdamWeightDecay in
one Cell, reading the loss. Ours adds norms, bias correction, the schedule and the monitors. The loops are run in turn,
step by step, in one process.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import mindspore as ms
from mindspore import Tensor, nn, ops
from rich.console import Console
from rich.table import Table

from harness import Scenario, corpus
from harness.models import PRESETS
from harness.trainer.loop import Training
from harness.trainer.model import Decoder
from harness.trainer.monitors import Monitors
from harness.trainer.parallel.groups import Groups
from harness.trainer.step import as_tensor

WARMUP = 5


class Bare(nn.Cell):
    """Loss, gradients, clipping and update in one graph."""

    def __init__(self, scenario: Scenario, clip: bool) -> None:
        super().__init__(auto_prefix=False)
        self.model = Decoder(PRESETS[scenario.model], scenario.sequence, scenario.seed)
        self.optimizer = nn.AdamWeightDecay(self.model.trainable_params(), scenario.learning_rate, weight_decay=0.1)
        self.gradients = ms.value_and_grad(self.loss, None, self.optimizer.parameters)
        self.clip = clip

    def loss(self, windows: Tensor) -> Tensor:
        """Mean cross-entropy."""
        logits = self.model(windows[:, :-1])
        return ops.cross_entropy(logits.reshape(-1, logits.shape[-1]), windows[:, 1:].reshape(-1))

    def construct(self, windows: Tensor) -> Tensor:
        """One step."""
        loss, gradients = self.gradients(windows)
        if self.clip:
            gradients = ops.clip_by_global_norm(gradients, 1.0)
        self.optimizer(gradients)
        return loss


def measure(scenario: Scenario, steps: int) -> dict[str, list[float]]:
    """Seconds of each step of each loop, measured in turn."""
    ms.set_context(mode=ms.GRAPH_MODE)
    with tempfile.TemporaryDirectory() as folder:
        training = Training(scenario, 0, Groups(), Path(), Path(folder))
        monitors = Monitors(training.callbacks, steps)
        order = corpus.sample_order(len(training.corpus.train), scenario.batch, steps, scenario.seed)
        clipped, unclipped = Bare(scenario, clip=True), Bare(scenario, clip=False)
        seconds: dict[str, list[float]] = {"ours": [], "bare": [], "bare, no clipping": []}
        for step in range(1, steps + 1):
            windows = as_tensor(training.corpus.train[order[step - 1]])
            start = time.perf_counter()
            monitors.begin_step(step)
            rate = training.rate(step)
            monitors.end_step((*training.step(windows, rate, step), rate))
            seconds["ours"].append(time.perf_counter() - start)
            for name, loop in (("bare", clipped), ("bare, no clipping", unclipped)):
                start = time.perf_counter()
                float(loop(windows).asnumpy())
                seconds[name].append(time.perf_counter() - start)
    return {name: values[WARMUP:] for name, values in seconds.items()}


def main() -> None:
    """Prints one table."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    table = Table("scenario", "loop", "median ms", "ours / this, median of pairs", box=None)
    for scenario in (
        Scenario(model="tiny", steps=steps, batch=16, eval_sequences=0),
        Scenario(model="nano", steps=steps, batch=8, sequence=64, eval_sequences=0),
    ):
        seconds = measure(scenario, steps)
        for name, values in seconds.items():
            ratio = statistics.median(a / b for a, b in zip(seconds["ours"], values, strict=True))
            table.add_row(scenario.model, name, f"{1000 * statistics.median(values):.2f}", f"{ratio:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()

"""Trains a scenario by MindSpore's own graph parallelism. Runs on Ascend and GPU; on CPU it can be compiled only."""

from pathlib import Path

import numpy as np
from mindspore import Tensor

from harness.corpus import IGNORED
from harness.run import Held
from harness.scenario import Scenario
from harness.trainer.auto.build import build
from harness.trainer.parallel.traffic import Collective
from harness.trainer.recorder import Recorder

STRATEGIES = "strategies.json"
"""File in the run's folder that MindSpore leaves the strategies of parameters in."""


class AutoEngine:
    """What ``harness.trainer.parallel.explicit.Engine`` is, with one graph for all of it."""

    outputs = ("loss", "grad_norm", "learning_rate")
    """What a step returns, the rate added by the loop. The compiler keeps no copy to take an update's norm from."""

    in_flight_memory = None
    optimizer_memory = None
    source = Path(__file__)
    """File that the model's operators are defined in."""

    def __init__(self, scenario: Scenario, rank: int, root: Path, folder: Path, with_values: bool = True) -> None:
        """Builds the graph's Cell; it is compiled when it is first called.

        Args:
            scenario: what to train.
            rank: this rank.
            root: folder that a strategy file is relative to.
            folder: of the run.
            with_values: whether parameters are given values.
        """
        self.scenario = scenario
        self.recorder = Recorder()
        self.tokens_seen = 0
        self.parallel = build(scenario, root, with_values)
        self.parameters = self.parallel.network.parameters
        if rank == 0 and not scenario.strategy:
            self.parallel.save_param_strategy_file(str(folder / STRATEGIES))

    def compile(self) -> None:
        """Compiles the step without running it."""
        shape = (self.scenario.batch, self.scenario.sequence + 1)
        self.parallel.compile(Tensor(np.zeros(shape, np.int32)))

    def step(self, windows: Tensor, rate: float, number: int) -> tuple[float, ...]:
        """Trains on (batch, sequence + 1) windows: every rank is given the whole batch, the graph takes its rows.

        Returns:
            Mean loss in nats over the batch's tokens, on ranks of the last stage; global gradient norm before clipping.
        """
        self.recorder.begin(number)
        counted = int((windows[:, 1:].asnumpy() != IGNORED).sum())
        self.tokens_seen += counted
        self.parallel.network.set_position(rate, number, self.scenario.tokens_per_step / max(1, counted))
        with self.recorder.span("compute", "step"):
            loss, norm = self.parallel(windows)
            return float(loss.asnumpy()), float(norm.asnumpy())

    def held(self) -> list[Held]:
        """Nothing: where the graph keeps a parameter's pieces, it does not say."""
        return []

    def traffic(self) -> list[Collective]:
        """Nothing: the graph's operators are counted by the audit."""
        return []

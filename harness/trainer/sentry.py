"""Stands before each update: lets it be made, leaves it out, or ends the training, with the evidence."""

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor
from mindspore.communication import GlobalComm

from harness.errors import TrainingStopped
from harness.files import write_atomically
from harness.guard import Spike, Watch
from harness.models import sizes_of
from harness.trainer.optimizer import learning_rate
from harness.trainer.parallel.explicit import Engine
from harness.trainer.parallel.norm import Agree
from harness.trainer.parallel.traffic import Collective
from harness.triage import Evidence, Row, place, unusual_rows

if TYPE_CHECKING:
    from harness.trainer.loop import Training

KEPT = 50
"""Last steps that are shown."""

MOST = 10
"""Spikes whose evidence is kept."""

WAIT_SECONDS = 10.0
"""How long a rank waits, before it ends, for the others to leave their evidence."""

Norms = npt.NDArray[np.float32]


class Sentry:
    """One rank's. All ranks come to the same judgement, for they look at the same loss and norm."""

    def __init__(self, training: "Training", engine: Engine, folder: Path) -> None:
        """Takes a training.

        Args:
            training: to watch.
            engine: that makes its updates.
            folder: of the run, which takes the evidence.
        """
        self.training, self.engine, self.folder = training, engine, folder
        self.watch = Watch(training.scenario.guard)
        self._seen = 0
        several = training.scenario.layout.world_size > 1
        self._agree = Agree(GlobalComm.WORLD_COMM_GROUP) if several else None
        self._before: tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], Norms] | None = None

    def __call__(self, step: int, loss: float, norm: float, windows: Tensor, norms: Norms) -> bool:
        """Whether the update may be made.

        Args:
            step: its number.
            loss: of the batch.
            norm: global norm of its gradient.
            windows: (rows, sequence + 1) of this rank.
            norms: of the gradient of each of this rank's parameters.

        Raises:
            TrainingStopped: it is the last spike that the guard allows.
        """
        guard, training = self.training.scenario.guard, self.training
        spike = self.watch.look(step, loss, norm)
        if self._agree is not None:
            # Replicas that differ, by a fault, would decide otherwise, and wait for each other for ever.
            spikes = float(self._agree(Tensor([float(spike is not None)], ms.float32)).asnumpy()[0])
            if spikes and spike is None:
                spike = self.watch.follow(step, loss)
        batch = windows.asnumpy(), training.positions, norms
        if spike is None:
            self._before = batch
            return True
        ends = spike.in_a_row >= guard.consecutive
        made = guard.policy == "stop" and spike.is_finite and not ends
        if spike.in_a_row == 1 and step > 1 and step - 1 not in training.store.steps():
            training.saver.save(step - 1, None, alarmed=True)
        if ends or self._seen < MOST:
            self._seen += 1
            self._leave(spike, loss, norm, batch, made)
        if ends:
            self._wait(step)
            many = f"{spike.in_a_row} spikes in a row" if spike.in_a_row > 1 else "it"
            raise TrainingStopped(f"{spike}; the guard ends the training after {many}")
        if not made:
            training.saver.put_back()
            training.skipped.append(step)
            training.warnings.append(f"{spike}; its update was left out")
        return made

    def traffic(self) -> list[Collective]:
        """One number among all ranks, where there are several."""
        return [Collective("AllReduce", 4)] if self._agree is not None else []

    def _leave(
        self,
        spike: Spike,
        loss: float,
        norm: float,
        batch: tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], Norms],
        made: bool,
    ) -> None:
        training, scenario = self.training, self.training.scenario
        windows, positions, norms = batch
        names = [parameter.name for parameter in self.engine.parameters]
        curves = {
            name: [*training.curves.curves.get(name, [])[1 - KEPT :], value]
            for name, value in (("loss", loss), ("grad_norm", norm))
        }
        shares = {}
        if self._before:
            squares = np.square(self._before[2], dtype=np.float64)
            shares = dict(zip(names, (squares / (squares.sum() or 1.0)).tolist(), strict=True))
        evidence = Evidence(
            rank=training.rank,
            spike=str(spike),
            step=spike.step,
            made=made,
            rows=self._unusual(windows, positions),
            checked=int((positions >= 0).sum()),
            before=len(self._unusual(*self._before[:2])) if self._before else 0,
            norms=dict(zip(names, norms.tolist(), strict=True)),
            shares_before=shares,
            clip_norm=scenario.clip_norm,
            learning_rate=training.rate(spike.step),
            scheduled=learning_rate(scenario, spike.step),
            not_finite=[p.name for p in self.engine.parameters if not np.isfinite(p.asnumpy()).all()],
            curves=curves,
            first=spike.step + 1 - len(curves["loss"]),
        )
        folder = place(self.folder, spike.step)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / f"rank-{training.rank}.json", evidence.model_dump_json(indent=1))

    def _unusual(self, windows: npt.NDArray[np.int32], positions: npt.NDArray[np.int64]) -> list[Row]:
        scenario, sizes = self.training.scenario, sizes_of(self.training.scenario.model)
        vocabulary = sizes.vocabulary if sizes else np.iinfo(np.int32).max
        is_text = scenario.data != "markov"
        return unusual_rows(windows, positions.tolist(), vocabulary, is_text, scenario.sequence + 1)

    def _wait(self, step: int) -> None:
        """Gives the other ranks time for their evidence: the first that ends takes all with it."""
        end = time.monotonic() + WAIT_SECONDS
        folder, ranks = place(self.folder, step), self.training.scenario.layout.world_size
        while time.monotonic() < end:
            with suppress(OSError):
                if len(list(folder.glob("rank-*.json"))) == ranks:
                    return
            time.sleep(0.01)

"""Has a trained model do tasks: ``python -m harness.trainer.examine FOLDER``, with a request in it."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, nn, ops

from harness.checkpoints.manifest import read_manifest
from harness.corpus import Tokens
from harness.decoding import Decoding
from harness.errors import HarnessError, TaskError
from harness.examination import Request
from harness.launch.child import REQUEST
from harness.scenario import Scenario
from harness.tasks.log import Log, Result, Setting
from harness.tasks.task import Sample, Task
from harness.trainer.__main__ import DEVICE_TARGETS
from harness.trainer.arrays import gathered, give_all
from harness.trainer.cache import CachedDecoder, Memory
from harness.trainer.generate import NextLogits, Writer
from harness.trainer.loop import build_model
from harness.trainer.model import Decoder
from harness.trainer.step import as_tensor

ROWS = 8
"""Endings that are scored at once."""


class Endings(nn.Cell):
    """Nats and hits of some of each row's tokens."""

    def __init__(self, model: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.model = model

    def construct(self, tokens: Tensor, targets: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """(rows, sequence) int32 tokens, what follows each, and 1.0 where that counts → (rows,) nats, (rows,) hits."""
        logits = self.model(tokens)
        flat = logits.reshape(-1, logits.shape[-1])
        nll = ops.cross_entropy(flat, targets.reshape(-1), reduction="none").reshape(targets.shape)
        hits = ops.cast(ops.cast(ops.argmax(logits, -1), ms.int32) == targets, ms.float32)
        return ops.reduce_sum(nll * counted, -1), ops.reduce_sum(hits * counted, -1)


def as_tokens(text: str) -> npt.NDArray[np.int32]:
    """A text's bytes."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


class Examiner:
    """Asks a model."""

    def __init__(self, model: nn.Cell, sequence: int) -> None:
        """Takes a trained model.

        Args:
            model: tokens to logits.
            sequence: tokens of its context.
        """
        self.sequence = sequence
        self.endings = Endings(model)
        self.endings.set_train(False)
        whole = NextLogits(model)
        whole.set_train(False)
        self.writer = Writer(whole, sequence, Memory(CachedDecoder(model, 1)) if isinstance(model, Decoder) else None)

    def check(self, task: Task, samples: Sequence[Sample], shots: int) -> None:
        """Refuses what does not fit, before anything is asked.

        Raises:
            TaskError: names the sample.
        """
        for sample in samples:
            endings = sample.choices or (sample.solution or "?",)
            needed = len(as_tokens(task.prompt(sample, shots))) + max(len(as_tokens(ending)) for ending in endings)
            if needed > self.sequence + 1:
                raise TaskError(
                    f"task {task.header.task!r}, sample {sample.id!r}: {needed} tokens with {shots} shots, the context "
                    f"is {self.sequence}; use fewer shots, or a model that was trained with a longer sequence"
                )

    def ask(self, task: Task, sample: Sample, setting: Setting) -> Result:
        """One sample."""
        prompt, kind = as_tokens(task.prompt(sample, setting.shots)), task.header.kind
        result = Result(setting=setting, kind=kind, sample=sample.id)
        if kind == "choice":
            found = self.score([(prompt, as_tokens(choice)) for choice in sample.choices])
            means = [nll / len(as_tokens(c)) for (nll, _), c in zip(found, sample.choices, strict=True)]
            right = bool(np.isfinite(means).all()) and int(np.argmin(means)) == sample.answer
            return result.model_copy(update={"correct": right, "nll": tuple(nll for nll, _ in found)})
        if kind == "cloze":
            ending = as_tokens(sample.solution)
            ((nll, hits),) = self.score([(prompt, ending)])
            return result.model_copy(update={"correct": hits == len(ending), "nll": (nll,)})
        stops = [task.header.stop] if task.header.stop else []
        output, truncated = self.write(prompt, task.header.tokens, stops, setting.decoding, setting.seed)
        correct = output.strip() == sample.solution.strip() if kind == "exact" else None
        return result.model_copy(update={"correct": correct, "output": output, "truncated": truncated})

    def score(self, pairs: Sequence[tuple[Tokens, Tokens]]) -> list[tuple[float, int]]:
        """Nats of each ending behind its prompt, and how many of its tokens were the likeliest."""
        found: list[tuple[float, int]] = []
        for first in range(0, len(pairs), ROWS):
            own = pairs[first : first + ROWS]
            tokens, targets = np.zeros((2, ROWS, self.sequence), np.int32)
            counted = np.zeros((ROWS, self.sequence), np.float32)
            for row, (prompt, ending) in enumerate(own):
                both = np.concatenate([prompt, ending])
                tokens[row, : len(both) - 1], targets[row, : len(both) - 1] = both[:-1], both[1:]
                counted[row, len(prompt) - 1 : len(both) - 1] = 1.0
            nll, hits = self.endings(as_tensor(tokens), as_tensor(targets), Tensor(counted))
            found += [(float(n), int(h)) for n, h in zip(nll.asnumpy(), hits.asnumpy(), strict=True)][: len(own)]
        return found

    def write(self, prompt: Tokens, most: int, stops: Sequence[str], decoding: Decoding, seed: int) -> tuple[str, bool]:
        """Continues a prompt to a stop, for ``most`` tokens, or to the end of the context.

        Returns:
            What was written, without the stop, and whether a stop was missing.
        """
        written, ends = bytearray(), [stop.encode() for stop in stops]
        length = min(most, self.sequence - len(prompt) + 1)
        draws = np.random.Generator(np.random.PCG64([seed, 2])).random((length, 1))
        for (token,) in self.writer.write(prompt[None], draws, decoding.choose):
            written.append(min(255, int(token)))
            for end in ends:
                if written.endswith(end):
                    return bytes(written[: -len(end)]).decode("utf-8", "replace"), False
        return bytes(written).decode("utf-8", "replace"), True


def results(examiner: Examiner, request: Request) -> Iterator[Result]:
    """The results that are missing, as they come."""
    for asked in request.tasks:
        task = asked.load()
        wanted = {sample.id: sample for sample in task.samples}
        for name in asked.missing:
            yield examiner.ask(task, wanted[name], asked.setting)


def prepared(checkpoint: Path, root: str, hardware: str) -> Examiner:
    """Asks the model of a checkpoint, which was found whole.

    Args:
        checkpoint: its folder.
        root: folder of the user's modules.
        hardware: ``cpu``, ``gpu`` or ``ascend``.

    Raises:
        CheckpointError: it is of another model.
    """
    sys.path.insert(0, root)
    manifest = read_manifest(checkpoint)
    scenario = Scenario.from_dict(manifest.scenario)
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_device(DEVICE_TARGETS[hardware])
    ms.set_seed(scenario.seed)
    model = build_model(scenario.replace(recompute="none"))
    give_all(model, gathered(checkpoint, manifest))
    return Examiner(model, scenario.sequence)


def main(folder: Path) -> None:
    """Does what the request in a folder asks for."""
    request = Request.model_validate_json((folder / REQUEST).read_text(encoding="utf-8"))
    examiner = prepared(Path(request.checkpoint), request.root, request.hardware)
    for asked in request.tasks:
        task = asked.load()
        wanted = [sample for sample in task.samples if sample.id in asked.missing]
        examiner.check(task, wanted, asked.setting.shots)
    for _ in Log(Path(request.log)).write(results(examiner, request)):
        pass


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except HarnessError as error:
        sys.exit(f"error: {error}")

"""Training data before it reaches MindSpore: text as bytes, a source of known entropy, the order of samples."""

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness import stored
from harness.augment import mask, shuffle_sentences
from harness.errors import DataError
from harness.models import sizes_of
from harness.records import split, summary
from harness.references import makes_data, user_function
from harness.scenario import Scenario

Tokens = npt.NDArray[np.int32]

IGNORED = -1
"""Token that pads a row; as a target it weighs nothing."""

HELD_OUT_EVERY = 10
"""Of a text, every tenth window is held out, so that both splits cover all of it."""

_WHEEL_PROSE = "Third_Party_Open_Source_Software_Notice"


@dataclass(frozen=True)
class StoredRows:
    """Windows that stay on disk."""

    files: tuple[str, ...]
    """MindRecord files. The row after the last weighs nothing."""

    rows: int

    def __len__(self) -> int:
        return self.rows


@dataclass(frozen=True)
class Corpus:
    """Windows of ``sequence + 1`` tokens: the inputs and, shifted by one, their targets."""

    train: "Tokens | StoredRows"
    """(windows, sequence + 1), or where they lie."""

    held_out: Tokens
    """(windows, sequence + 1), disjoint from ``train``."""

    digest: str
    """Identifies the data; a baseline remembers it."""

    warnings: tuple[str, ...] = ()
    """What the user should know of it."""

    oracle_nll: float | None = None
    """Nats a token that the source itself would spend on ``held_out``; no model does better but by luck."""


def load(scenario: Scenario, root: Path) -> Corpus:
    """The corpus that a scenario names.

    Args:
        scenario: gives data, sequence, and for ``markov`` the number of windows.
        root: folder that relative text files are relative to.

    Raises:
        DataError: the text is missing, not UTF-8, shorter than both splits need, or holds bad records; or what was
            converted of it is not whole.
    """
    if scenario.data == "markov":
        return _markov(scenario)
    if makes_data(scenario.data):
        return _made(scenario)
    if scenario.data.startswith("records:"):
        return _records(scenario, root)
    if scenario.data.startswith("mindrecord:"):
        return _stored(scenario, root)
    name = scenario.data.partition(":")[2]
    content = _read(root / name if name else _wheel_prose(), scenario)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"data={scenario.data!r}: byte {error.start} is not UTF-8; convert the file to UTF-8") from None
    windows = _windows(content, scenario.sequence)
    # What is held out stays as it is written, so that evaluations compare.
    is_held_out = _held_out(len(windows))
    if not is_held_out.any():
        least = HELD_OUT_EVERY * scenario.sequence + 1
        raise DataError(
            f"data={scenario.data!r} has {len(content)} bytes; sequence={scenario.sequence} with a held-out split "
            f"needs {least}: use a longer text or a shorter sequence"
        )
    digest = hashlib.sha256(content).hexdigest()[:16]
    train = windows[~is_held_out]
    if scenario.shuffle_sentences:
        text = train[:, :-1].astype(np.uint8).tobytes().decode("utf-8", "ignore")
        train = _windows(shuffle_sentences(text, scenario.seed).encode(), scenario.sequence)
    return Corpus(_masked(train, scenario), windows[is_held_out], f"text-{digest}")


def check(scenario: Scenario, root: Path) -> Corpus | None:
    """The corpus, before any process is started; None where only a rank's process may call what makes it.

    Raises:
        DataError: as ``load``.
    """
    return None if makes_data(scenario.data) else load(scenario, root)


def _made(scenario: Scenario) -> Corpus:
    """What the user's function returns."""
    made = user_function("data", scenario.data)(scenario)
    wanted = f"return two int32 arrays of (rows, {scenario.sequence + 1}) tokens"
    if not isinstance(made, tuple) or len(made) != 2:
        raise DataError(f"data={scenario.data!r} returned {type(made).__name__}; {wanted}")
    splits = []
    for name, rows in zip(("rows to train on", "held-out rows"), made, strict=True):
        try:
            found = np.asarray(rows)
        except ValueError as error:
            raise DataError(f"data={scenario.data!r}: {name} are no array ({error}); {wanted}") from None
        if found.ndim != 2 or found.shape[1] != scenario.sequence + 1 or not len(found) or found.dtype.kind not in "iu":
            raise DataError(f"data={scenario.data!r}: {name} are {found.dtype} of shape {found.shape}; {wanted}")
        if found.min() < IGNORED:
            raise DataError(
                f"data={scenario.data!r}: {name} hold {found.min()}; tokens begin with 0, −1 weighs nothing"
            )
        sizes = sizes_of(scenario.model)
        most = sizes.vocabulary if sizes else 2**31
        if found.max() >= most:
            raise DataError(
                f"data={scenario.data!r}: {name} hold {found.max()}; tokens of this model end before {most}"
            )
        splits.append(np.ascontiguousarray(found, np.int32))
    train, held_out = splits
    digest = hashlib.sha256(str(train.shape).encode() + train.tobytes() + held_out.tobytes()).hexdigest()[:16]
    return Corpus(_masked(train, scenario), held_out, f"function-{digest}")


def _records(scenario: Scenario, root: Path) -> Corpus:
    content = _read(root / scenario.data.partition(":")[2], scenario)
    good, bad = split(content, scenario.sequence + 1)
    warning = f"data={scenario.data!r}: {summary(bad, len(good) + len(bad))}" if bad else ""
    if bad and scenario.bad_records == "fail":
        raise DataError(f"{warning}; mend them, or set bad_records='skip'")
    is_held_out = _held_out(len(good))
    if not is_held_out.any():
        raise DataError(f"data={scenario.data!r} has {len(good)} good records; both splits take {HELD_OUT_EVERY}")
    windows = np.full((len(good), scenario.sequence + 1), IGNORED, np.int32)
    for row, record in zip(windows, good, strict=True):
        row[: len(record)] = np.frombuffer(record, np.uint8)
    digest = hashlib.sha256(content).hexdigest()[:16]
    train = _masked(windows[~is_held_out], scenario)
    return Corpus(train, windows[is_held_out], f"records-{digest}", (warning,) if warning else ())


def _stored(scenario: Scenario, root: Path) -> Corpus:
    folder = root / scenario.data.partition(":")[2]
    manifest = stored.read(folder, scenario.data)
    if manifest.sequence != scenario.sequence:
        raise DataError(
            f"sequence={scenario.sequence} and data={scenario.data!r} disagree: it was converted with "
            f"sequence={manifest.sequence}; use that, or convert the text anew"
        )
    if scenario.samples and manifest.data.startswith("records-"):
        raise DataError(
            f"samples={scenario.samples} and data={scenario.data!r} disagree: it was made of records, and prompts are "
            "cut from running text; set samples=0"
        )
    rows = StoredRows(tuple(str(folder / name) for name in manifest.shards), manifest.rows)
    return Corpus(rows, stored.held_out(folder, scenario.data), manifest.data)


def _held_out(windows: int) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.arange(windows) % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
    return found


def _read(path: Path, scenario: Scenario) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"data={scenario.data!r} can't be read: {error.strerror}; name an existing text file") from None


def _masked(windows: Tokens, scenario: Scenario) -> Tokens:
    return mask(windows, scenario.masking, scenario.seed, IGNORED) if scenario.masking else windows


def _wheel_prose() -> Path:
    spec = importlib.util.find_spec("mindspore")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("data='text' reads prose from MindSpore's wheel, which is not installed: pip install mindspore")
    return Path(spec.submodule_search_locations[0]) / _WHEEL_PROSE


def _windows(content: bytes, sequence: int) -> Tokens:
    tokens = np.frombuffer(content, np.uint8).astype(np.int32)
    count = max(0, (len(tokens) - 1) // sequence)
    starts = np.arange(count)[:, None] * sequence
    return tokens[starts + np.arange(sequence + 1)[None, :]] if count else np.empty((0, sequence + 1), np.int32)


@dataclass(frozen=True)
class MarkovSource:
    """A first-order Markov chain over a few symbols, whose entropy rate is known exactly."""

    transitions: npt.NDArray[np.float64]
    """(symbols, symbols) probabilities of the next symbol."""

    @classmethod
    def default(cls) -> "MarkovSource":
        """The chain of ``data="markov"``: 16 symbols, rows drawn once from a Dirichlet distribution of weight 0.3."""
        return cls(np.random.Generator(np.random.PCG64(20_260)).dirichlet(np.full(16, 0.3), size=16))

    @property
    def stationary(self) -> npt.NDArray[np.float64]:
        """Long-run share of each symbol: the left eigenvector of ``transitions`` for eigenvalue 1."""
        size = len(self.transitions)
        system = np.vstack([self.transitions.T - np.eye(size), np.ones(size)])
        solution: npt.NDArray[np.float64] = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]
        return solution

    @property
    def entropy_rate(self) -> float:
        """Nats a symbol: Σᵢ πᵢ Σⱼ −pᵢⱼ ln pᵢⱼ (Cover & Thomas, «Elements of Information Theory», theorem 4.2.4)."""
        p = self.transitions
        logs = np.log(p, out=np.zeros_like(p), where=p > 0)
        return float(-(self.stationary[:, None] * p * logs).sum())

    def draw(self, windows: int, length: int, seed: int) -> Tokens:
        """``windows`` independent sequences of ``length`` symbols, each started from the stationary distribution."""
        random = np.random.Generator(np.random.PCG64(seed)).random((windows, length))
        symbols = np.empty((windows, length), np.int32)
        last = len(self.transitions) - 1
        symbols[:, 0] = np.minimum(np.searchsorted(np.cumsum(self.stationary), random[:, 0]), last)
        cumulative = np.cumsum(self.transitions, axis=1)
        for step in range(1, length):
            rows = cumulative[symbols[:, step - 1]]
            symbols[:, step] = np.minimum((rows < random[:, step, None]).sum(axis=1), last)
        return symbols

    def nll(self, windows: Tokens) -> float:
        """Mean nats a token that the chain itself spends on ``windows`` (first tokens are given)."""
        chosen = self.transitions[windows[:, :-1], windows[:, 1:]]
        return float(-np.log(chosen).mean())


def _markov(scenario: Scenario) -> Corpus:
    source = MarkovSource.default()
    length = scenario.sequence + 1
    train = source.draw(scenario.steps * scenario.batch, length, seed=2 * scenario.seed)
    held_out = source.draw(max(1, scenario.eval_sequences, scenario.samples), length, seed=2 * scenario.seed + 1)
    name = f"markov-{len(source.transitions)}"
    return Corpus(_masked(train, scenario), held_out, name, oracle_nll=source.nll(held_out))


def sample_order(windows: int, batch: int, steps: int, seed: int, seen: int = 0) -> npt.NDArray[np.int64]:
    """Which window stands where in each update's batch.

    Every epoch is a new permutation. Its last batch is filled up with −1, rows that weigh nothing, so that nothing is
    carried over the end of an epoch and nothing is dropped.

    Args:
        windows: rows of the training split.
        batch: rows of an update.
        steps: updates.
        seed: of the permutations.
        seen: rows that were trained on before, whatever the batch was then.

    Returns:
        (steps, batch) indices of windows, or −1.
    """
    order = np.full((steps, batch), -1, np.int64)
    epoch, first = divmod(seen, windows)
    done = 0
    while done < steps:
        left = np.random.Generator(np.random.PCG64([seed, epoch])).permutation(windows)[first:]
        own = order[done : done + -(-len(left) // batch)].reshape(-1)
        own[:] = np.pad(left, (0, -len(left) % batch), constant_values=-1)[: len(own)]
        done, epoch, first = done + -(-len(left) // batch), epoch + 1, 0
    return order


def evenly_spaced(windows: Tokens, count: int) -> Tokens:
    """At most ``count`` windows, spread over the whole split."""
    if len(windows) <= count:
        return windows
    return windows[np.linspace(0, len(windows) - 1, count).round().astype(np.int64)]

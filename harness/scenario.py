"""What to train: a frozen, validated, hashable description of one training run."""

import dataclasses
import difflib
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.agreement import check_agreement, check_values
from harness.checkpoints.policy import Checkpoints
from harness.decoding import Decoding
from harness.errors import ScenarioError
from harness.external import External
from harness.guard import Guard
from harness.layout import Layout

SEMANTICS = 1
"""Part of every hash. Raise it when a field's default or meaning changes: all baselines are then asked for anew."""

CHOICES = {
    "precision": ("float32", "float16", "bfloat16"),
    "mode": ("graph", "pynative"),
    "optimizer": ("adamw", "sgd"),
    "schedule": ("constant", "linear", "cosine"),
    "recompute": ("none", "full", "middle"),
    "pipeline_schedule": ("gpipe", "1f1b", "interleaved", "zero_bubble"),
    "execution_order": ("ready", "graph"),
    "bad_records": ("fail", "skip"),
    "engine": ("explicit", "semi_auto", "sharding_propagation", "recursive_programming"),
}
_AT_LEAST = {
    "steps": 1,
    "batch": 1,
    "sequence": 2,
    "accumulation": 1,
    "micro_batches": 1,
    "chunks": 1,
    "warmup_steps": 0,
    "seed": 0,
    "eval_every": 0,
    "eval_sequences": 0,
    "samples": 0,
    "sample_tokens": 1,
    "sample_every": 0,
    "quick_sequences": 0,
    "profiled_steps": 0,
    "trace_every": 0,
    "data_workers": 1,
    "data_prefetch": 1,
}


@dataclass(frozen=True)
class Scenario:
    """One training run, stated completely: the same scenario and seed give the same numbers.

    Raises:
        ScenarioError: a value is out of range, or two fields disagree.
    """

    model: str = "tiny"
    """A preset of ``harness.models.PRESETS``, sizes of one's own (``harness.models.sizes_of``), or the user's
    ``package.module:function``, which is called with the scenario and returns a Cell from int32 tokens (batch,
    sequence) to logits (batch, sequence, vocabulary). Such a function applies precision and recompute itself."""

    data: str = "text"
    """``text`` (the prose that MindSpore's wheel ships), ``text:FILE`` (UTF-8, relative to the project),
    ``records:FILE`` (the same, a record a line, which stands alone in its row), ``mindrecord:FOLDER`` (what ``harness
    convert`` made of either), ``markov`` (a synthetic source of known entropy), or the user's
    ``package.module:function``, which is called with the scenario and returns two int32 arrays of (rows, sequence + 1)
    tokens, to train on and held out; −1 weighs nothing."""

    step: str = ""
    """Empty for this trainer's step, or the user's ``package.module:function``, which is called with the model and the
    scenario and returns a function of windows (this rank's rows, sequence + 1), rate and step number. That updates the
    model and returns mean loss and gradient norm over all ranks; what this trainer's step has, it has of itself."""

    bad_records: str = "fail"
    """What becomes of records that are empty, longer than a row, or not UTF-8: ``fail``, or ``skip`` and tell."""

    masking: float = 0.0
    """Share of training tokens, at most 0.15, that are neither shown nor asked for; drawn anew for each seed."""

    shuffle_sentences: bool = False
    """Whether the training text's sentences change places within their paragraphs; not for code."""

    data_workers: int = 1
    """Workers that fetch rows; their number changes no order."""

    data_processes: bool = False
    """Whether the workers are processes, not threads."""

    data_prefetch: int = 16
    """Results that each operation of the data pipeline keeps ready."""

    steps: int = 20
    """Optimizer updates."""

    batch: int = 16
    """Sequences of one update, over all replicas and accumulation."""

    sequence: int = 128
    """Tokens of one sequence."""

    accumulation: int = 1
    """Parts into which each replica splits its share of the batch, one after the other, for one update."""

    micro_batches: int = 1
    """Micro-batches in flight through the pipeline for each part."""

    pipeline_schedule: str = "1f1b"
    """Order in which stages work: ``gpipe``, ``1f1b``, ``interleaved``, or ``zero_bubble``."""

    chunks: int = 1
    """Parts of the model on each stage; more than one where the schedule is ``interleaved``."""

    precision: str = "float32"
    """Type of matrix products: ``float32``, ``float16`` or ``bfloat16``; parameters and sums stay float32."""

    mode: str = "graph"
    """MindSpore's execution mode: ``graph`` or ``pynative``."""

    graph_kernel: bool = False
    """Whether MindSpore's compiler fuses the graph's small operators into kernels of its own."""

    compile_cache: bool = False
    """Whether compiled graphs are kept for later runs of the session, and taken from there."""

    execution_order: str = "ready"
    """When an operator of a graph runs on CPU: ``ready``, as soon as it can; or ``graph``, one after the other in the
    graph's order, as GPU and Ascend always do. It is slower there and frees memory sooner."""

    optimizer: str = "adamw"
    """``adamw`` (decoupled decay, bias-corrected moments) or ``sgd``."""

    learning_rate: float = 1e-3
    """Peak learning rate."""

    schedule: str = "cosine"
    """How the rate goes on after warm-up: ``constant``, ``linear`` to zero, or ``cosine`` to a tenth of the peak."""

    warmup_steps: int = 0
    """Updates over which the rate rises linearly to its peak."""

    weight_decay: float = 0.1
    """Decoupled weight decay, times the learning rate, on all matrices (not on norms)."""

    clip_norm: float | None = 1.0
    """Largest global gradient norm; ``None`` leaves gradients as they are."""

    recompute: str = "none"
    """Blocks whose activations are computed again in backward: ``none``, ``full``, ``middle`` (not first and last)."""

    fused_reduction: bool = True
    """Whether data-parallel ranks reduce all gradients in one AllReduce, or each parameter's in one of its own."""

    layout: Layout = field(default_factory=Layout)
    """Data, tensor and pipeline parallelism."""

    engine: str = "explicit"
    """Who spreads the model over ranks: ``explicit`` is this project's trainer; the others are MindSpore's own graph
    parallelism, by strategies that we set (``semi_auto``) or that the compiler searches."""

    strategy: str = ""
    """File of parameter strategies, saved by MindSpore, that its own engines load; relative to the project."""

    seed: int = 0
    """Seed of parameters, data order and sampling."""

    eval_every: int = 0
    """Updates between evaluations on the held-out split; 0 evaluates once, at the end."""

    eval_sequences: int = 128
    """Held-out sequences of one evaluation; 0 evaluates never."""

    quick_sequences: int = 0
    """Held-out sequences of an evaluation during training, if not all of them; on trouble all are evaluated at once."""

    samples: int = 0
    """Continuations sampled after training; 0 samples none."""

    sample_tokens: int = 64
    """Tokens of each sampled continuation."""

    sample_every: int = 0
    """Updates between samplings during training; 0 samples once, at the end."""

    temperature: float = 1.0
    """Divides the logits that continuations are drawn by; 0 takes the likeliest token always."""

    top_k: int = 0
    """Likeliest tokens that may be drawn; 0 for all."""

    top_p: float = 1.0
    """Share of the probability that the tokens that may be drawn must reach, likeliest first."""

    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    """When the training saves itself, in its run's folder, and what of that is kept."""

    guard: Guard = field(default_factory=Guard)
    """What is done about a loss or gradient norm that is none, or far from what it was."""

    trace_every: int = 0
    """Updates between those of which the run's folder keeps what each layer held, for ``harness diverge``; 0 keeps
    none."""

    profiled_steps: int = 0
    """Steps after the warm-up under MindSpore's profiler, which counts operators and slows them; 0 profiles none."""

    def __post_init__(self) -> None:
        self._check_types()
        check_values(self)
        check_agreement(self)

    def _check_types(self) -> None:
        for name, low in _AT_LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise ScenarioError(f"{name} must be a whole number of at least {low}, not {value!r}")
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ScenarioError(f"{name}={value!r} is unknown; choose one of {', '.join(choices)}")
        for name in ("learning_rate", "weight_decay", "clip_norm", "masking", "temperature", "top_p"):
            value = getattr(self, name)
            if value is None and name == "clip_norm":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                raise ScenarioError(f"{name} must be a finite number of at least 0, not {value!r}")
            object.__setattr__(self, name, float(value))
        for name in ("fused_reduction", "graph_kernel", "compile_cache", "shuffle_sentences", "data_processes"):
            if not isinstance(getattr(self, name), bool):
                raise ScenarioError(f"{name} must be True or False, not {getattr(self, name)!r}")
        for name in ("model", "data", "step", "strategy"):
            if not isinstance(getattr(self, name), str):
                raise ScenarioError(f"{name} must be a text, not {getattr(self, name)!r}")
        for name, kind in _PARTS.items():
            if not isinstance(getattr(self, name), kind):
                raise ScenarioError(f"{name} must be {kind.__name__}(…), not {getattr(self, name)!r}")

    @property
    def decoding(self) -> Decoding:
        """How continuations are drawn."""
        return Decoding(self.temperature, self.top_k, self.top_p)

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one update over all replicas."""
        return self.batch * self.sequence

    @property
    def micro_batch_rows(self) -> int:
        """Sequences that go through a model, or a stage of it, at once."""
        return self.batch // (self.layout.dp * self.accumulation * self.micro_batches)

    @property
    def reporting_rank(self) -> int:
        """Whose curves are the run's: any rank's, but in MindSpore's own pipeline the last stage alone has the loss."""
        return 0 if self.engine == "explicit" or self.layout.pp == 1 else self.layout.world_size - 1

    @property
    def hash(self) -> str:
        """Content hash, 16 hexadecimal digits.

        It covers the fields that differ from their default, so that a field added later leaves old hashes alone;
        ``SEMANTICS`` covers the defaults themselves.
        """
        content = _without_defaults(self.to_dict(), _DEFAULTS)
        text = json.dumps({"semantics": SEMANTICS, **content}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def ranks(self) -> int:
        """Devices that it takes."""
        return self.layout.world_size

    @staticmethod
    def command(
        command: Sequence[str], *, output: str = "", ranks: int = 1, tokens_per_step: int | None = None
    ) -> External:
        """Training of one's own, by whatever launcher; see ``harness.external.External`` for the arguments.

        Raises:
            ScenarioError: an argument can't work.
        """
        return External(command=command, output=output, ranks=ranks, tokens_per_step=tokens_per_step)

    def replace(self, **changes: Any) -> "Scenario":
        """A copy with some fields changed; ``dp=``, ``tp=`` … are given inside ``layout=``, and so on."""
        return Scenario.from_dict({**self._shallow(), **changes})

    def differences(self, other: "Scenario") -> list[str]:
        """The fields in which the other scenario differs, as ``name: ours → theirs``."""
        return differences(self.to_dict(), other.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self._shallow() | {name: getattr(self, name).to_dict() for name in _PARTS}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Scenario":
        """The scenario that ``to_dict`` described.

        Raises:
            ScenarioError: a field is unknown or its value can't work.
        """
        names = [f.name for f in dataclasses.fields(cls)]
        for name in content:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; fields are {', '.join(names)}"
                raise ScenarioError(f"a scenario has no field {name!r}{hint}")
        parts = {}
        for name, kind in _PARTS.items():
            if isinstance(value := content.get(name), dict):
                try:
                    parts[name] = kind(**value)
                except TypeError as error:
                    raise ScenarioError(f"{name}={value!r} is no {kind.__name__}: {error}") from None
        return cls(**{**content, **parts})

    def _shallow(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


_PARTS: dict[str, Any] = {"layout": Layout, "checkpoints": Checkpoints, "guard": Guard}
"""Fields that have fields of their own."""


def differences(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """The entries in which theirs differ from mine, which have the same names, as ``name: ours → theirs``."""
    return [f"{name}: {mine[name]} → {theirs[name]}" for name in mine if mine[name] != theirs[name]]


def _without_defaults(content: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_defaults(value, defaults[name]) if isinstance(value, dict) else value
        for name, value in content.items()
        if value != defaults[name]
    }


_DEFAULTS = Scenario().to_dict()

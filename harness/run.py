"""What came back: the report of each rank, and the run that is put together from them. The schema of results."""

import statistics
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from harness.environment import Environment
from harness.errors import Undefined
from harness.evaluation import Evaluation
from harness.external import KIND, External
from harness.metrics.growth import Growth, growth
from harness.metrics.sketch import distance
from harness.metrics.speed import WARMUP_STEPS
from harness.profiling import Operator
from harness.scenario import Scenario
from harness.timeline import Event

MOST_VALUES = 100
"""Times that a run's host memory is looked at; shorter runs say nothing of growth, so nobody looks."""


def spacing(steps: int) -> int:
    """Steps between two looks at the host memory."""
    return max(1, steps // MOST_VALUES)


PHASES = ("wait", "start", "join", "build", "compile", "train", "evaluate", "sample", "save", "end")
"""What a run's time goes into, in this order: waiting for the device; starting a process and importing; joining the
other ranks; building the model and reading data; compiling, which is what the first step takes longer than a typical
one; steps but for that, waiting for rows included; held-out evaluations; continuations; checkpoints; and the time from
the reporting rank's report to the end of all processes."""

SHARED = "the test is marked untimed, so its runs may share cores and compiled graphs; without the mark they are timed"

_STRICT = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class Load(BaseModel):
    """Processor time over a window, in seconds."""

    model_config = _STRICT

    cores: int
    on: list[int] = Field(default_factory=list)
    """Their numbers."""

    seconds: float
    """Length of the window."""

    busy: float
    """Of all these cores, for whatever reason; what the hypervisor gave to others included."""

    own: float
    """Of this process and the children that it has waited for."""


class Held(BaseModel):
    """A parameter, or a shard of one, as a rank holds it after training."""

    model_config = _STRICT

    name: str
    shard: int = 0
    shards: int = 1
    size: int
    digest: str
    """Hash of its bytes; equal on all ranks that hold a copy."""

    squares: float
    sketch: list[float]
    """As ``harness.metrics.sketch``; those of all shards add up."""


class Weights(BaseModel):
    """A whole parameter after training, by its norm and its sketch."""

    model_config = _STRICT

    norm: float
    sketch: list[float]


class RankReport(BaseModel):
    """What one rank measured."""

    model_config = _STRICT

    rank: int
    scenario_hash: str
    mindspore: str
    device: str = ""
    threads: int = 0
    data: str
    """Digest of the corpus."""

    skipped: list[int] = Field(default_factory=list)
    """Steps whose update the guard left out."""

    held: list[Held]
    """Parameters after training."""

    step_seconds: list[float]
    data_seconds: list[float] = Field(default_factory=list)
    """How long each step's rows took to come; no part of ``step_seconds``."""

    curves: dict[str, list[float]]
    """One value a step."""

    evaluation: Evaluation | None = None
    """On all held-out windows, after training, where the scenario evaluates."""

    evaluations: list[Evaluation] = Field(default_factory=list)
    """During training."""

    checkpoint_seconds: list[float] = Field(default_factory=list)
    """How long each checkpoint took to save; no part of ``step_seconds``."""

    checkpoint_evaluations: list[Evaluation] = Field(default_factory=list)
    """On all held-out windows, at each checkpoint that was due."""

    samplings: list[list[list[int]]] = Field(default_factory=list)
    """Continuations during training, as ``samples``."""

    oracle_nll: float | None = None
    samples: list[list[int]] = Field(default_factory=list)
    """Sampled continuations as token ids, without their prompts."""

    peak_memory: float | None = None
    """MiB at the peak of MindSpore's pool."""

    load: Load | None = None
    """Of the cores, from the first step to the last."""

    collectives: list[tuple[str, int]] | None = None
    """Kind and bytes of each collective of a step."""

    optimizer_memory: float | None = None
    """MiB of optimizer states that this rank keeps."""

    in_flight_memory: float | None = None
    """MiB of inputs that this stage of a pipeline held at once for backwards to come."""

    events: list[Event] = Field(default_factory=list)
    """What it did when, in the last steps of a run of several ranks."""

    host_memory: list[float] = Field(default_factory=list)
    """MiB of this process and its children, at most a hundred times in a long run."""

    operators: list[Operator] = Field(default_factory=list)
    """Of a step, slowest kind first, where steps were profiled."""

    warnings: list[str] = Field(default_factory=list)
    """What the user should know of the model and of the data."""

    source: str = ""
    """File that the model's class is defined in."""

    phases: dict[str, float] = Field(default_factory=dict)
    """Seconds by what they were spent on, as ``PHASES``."""

    reused_graphs: int = 0
    """Number of graphs that it loaded from an earlier run instead of compiling them."""


class Run(BaseModel):
    """One finished run of a scenario."""

    model_config = _STRICT

    scenario: dict[str, Any]
    hardware: str
    environment: Environment
    machine: str
    """Key of the machine that its times belong to."""

    key: str = ""
    """Name among the runs of its session; empty outside of one."""

    fault: str | None = None
    """The planted fault, if any."""

    resumed_from: int | None = None
    """Update whose checkpoint it went on from; its curves begin with the first update all the same."""

    metrics: dict[str, float]
    """Scalars by name."""

    undefined: dict[str, str] = Field(default_factory=dict)
    """Metrics that do not exist in this run, with the reason."""

    curves: dict[str, list[float]]
    steps: dict[str, list[int]] = Field(default_factory=dict)
    """Of each curve of a training of others, the steps that its values belong to; ours have one for each."""

    step_seconds: list[float]
    foreign_load: float | None = None
    """Share of the machine's cores that other processes used during training; None where nobody measured it."""

    device_processes: int = 0
    """Processes of others on the training devices when the run was started."""

    oversubscribed: str = ""
    """Says so where more ranks than cores shared this machine: its times are then those of waiting for a core."""

    shared: bool = False
    """Whether other trainings may have run beside it, or graphs been reused; it has no times then."""

    weights: dict[str, Weights] = Field(default_factory=dict)
    """Every parameter after training."""

    events: list[list[Event]] = Field(default_factory=list)
    """What each rank did when, in the last steps of a run of several ranks."""

    straggler: str = ""
    """Names a rank that holds the others up."""

    host_memory: list[float] = Field(default_factory=list)
    """MiB that the reporting rank and its children took, at equal distances."""

    operators: list[Operator] = Field(default_factory=list)
    """Of a step of the reporting rank, slowest kind first, where steps were profiled."""

    warnings: list[str] = Field(default_factory=list)
    """What the user should know of the model, of the data, and of the way from one to the other."""

    oracle_perplexity: float | None = None
    samples: list[str] = Field(default_factory=list)

    phases: dict[str, float] = Field(default_factory=dict)
    """Seconds of the reporting rank by what they were spent on, as ``PHASES``; no metric, so never judged."""

    reused_graphs: int = 0
    """Number of graphs that its ranks loaded from earlier runs of the session instead of compiling them."""

    def __getitem__(self, name: str) -> float:
        """A scalar.

        Raises:
            Undefined: the run has no such value; the message says why.
        """
        if name in self.metrics:
            return self.metrics[name]
        known = ", ".join(sorted(self.metrics))
        raise Undefined(self.undefined.get(name, f"this run has no metric {name!r}; it has {known}"))

    def curve(self, name: str) -> tuple[float, ...]:
        """One value a step.

        Raises:
            Undefined: the run has no such curve.
        """
        if name not in self.curves:
            raise Undefined(f"this run has no curve {name!r}; it has {', '.join(sorted(self.curves))}")
        return tuple(self.curves[name])

    def parameter_distance(self, other: "Run") -> float:
        """How far the trained parameters are from another run's: the largest relative distance of any one of them.

        Estimated from sketches, to about a fifth of it; exactly 0 for equal parameters.

        Raises:
            Undefined: the runs have not the same parameters.
        """
        if self.weights.keys() != other.weights.keys() or not self.weights:
            different = sorted(self.weights.keys() ^ other.weights.keys()) or ["none recorded"]
            raise Undefined(f"the runs have not the same parameters: {', '.join(different[:3])}")
        return max(
            distance(mine.sketch, other.weights[name].sketch) / max(mine.norm, 1e-30)
            for name, mine in self.weights.items()
        )

    @property
    def typical_step_time(self) -> float:
        """Median seconds of a steady step: for ratios between two runs of one session.

        Raises:
            Undefined: no steady step was timed.
        """
        if self.shared:
            raise Undefined(SHARED)
        if len(self.step_seconds) <= WARMUP_STEPS:
            raise Undefined(
                f"no steady step was timed: {len(self.step_seconds)} were, of which {WARMUP_STEPS} are warm-up"
            )
        return statistics.median(self.step_seconds[WARMUP_STEPS:])

    @property
    def host_memory_growth(self) -> Growth:
        """MiB a step by which the host memory grows, the first third left out, in which caches fill.

        Raises:
            Undefined: nobody looked often enough.
        """
        return growth(self.host_memory[len(self.host_memory) // 3 :], spacing(self.scenario.get("steps", 0)))

    @property
    def description(self) -> Scenario | External:
        """The scenario that was run."""
        return described(self.scenario)


def described(content: dict[str, Any]) -> Scenario | External:
    """A scenario, or a training of others, from its plain values.

    Raises:
        ScenarioError: it is not valid, any more.
    """
    return External.from_dict(content) if content.get("kind") == KIND else Scenario.from_dict(content)

"""What came back: the report of each rank, and the run assembled from them. The schema of results."""

import statistics
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from harness.environment import Environment, Host
from harness.errors import Undefined
from harness.metrics.speed import steady_step_time, step_flops, throughput
from harness.metrics.text import distinct_n, perplexity, repetition_ratio
from harness.models import PRESETS
from harness.scenario import Scenario

WARMUP_STEPS = 2
"""First steps that no time is taken from: the first compiles, the second fills caches."""

_STRICT = ConfigDict(extra="forbid", ser_json_inf_nan="strings")


class Load(BaseModel):
    """Processor time over a window, in seconds."""

    model_config = _STRICT

    cores: int
    seconds: float
    """Length of the window."""

    busy: float
    """Of all these cores, for whatever reason; what the hypervisor gave to others included."""

    own: float
    """Of this process and the children that it has waited for."""


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

    parameters: int
    parameter_digest: str
    """Hash of all parameter bytes after training; equal on all replicas."""

    step_seconds: list[float]
    curves: dict[str, list[float]]
    """One value a step, except ``perplexity_curve``: one an evaluation."""

    nll_sum: float | None = None
    """Nats over the held-out tokens, and how many; on rank 0 where the scenario evaluates."""

    nll_tokens: int = 0
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

    source: str = ""
    """File that the model's class is defined in."""


class Run(BaseModel):
    """One finished run of a scenario."""

    model_config = _STRICT

    scenario: dict[str, Any]
    hardware: str
    environment: Environment
    machine: str
    """Key of the machine that its times belong to."""

    fault: str | None = None
    """The planted fault, if any."""

    metrics: dict[str, float]
    """Scalars by name."""

    undefined: dict[str, str] = Field(default_factory=dict)
    """Metrics that do not exist in this run, with the reason."""

    curves: dict[str, list[float]]
    step_seconds: list[float]
    foreign_load: float | None = None
    """Share of the machine's cores that other processes used during training; None where nobody measured it."""

    device_processes: int = 0
    """Processes of others on the training devices when the run was started."""

    oracle_perplexity: float | None = None
    samples: list[str] = Field(default_factory=list)

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

    @property
    def typical_step_time(self) -> float:
        """Median seconds of a steady step: for ratios between two runs of one session."""
        return statistics.median(self.step_seconds[WARMUP_STEPS:])

    @property
    def description(self) -> Scenario:
        """The scenario that was run."""
        return Scenario.from_dict(self.scenario)


def assemble(
    scenario: Scenario,
    host: Host,
    reports: list[RankReport],
    fault: str | None = None,
) -> Run:
    """Puts the ranks' reports together.

    Loss, norms and perplexity are global values that rank 0 reports; memory is the largest over ranks; a step is over
    when its slowest rank is.
    """
    reports = sorted(reports, key=lambda report: report.rank)
    first = reports[0]
    seconds = [max(times) for times in zip(*(report.step_seconds for report in reports), strict=True)]
    loads = [report.load for report in reports if report.load is not None]
    values = _Values()
    _speed(values, scenario, seconds)
    _text(values, scenario, first)
    values.add("parameters", lambda: first.parameters)
    peaks = [report.peak_memory for report in reports]
    if None not in peaks:
        values.add("peak_memory", lambda: max(peak for peak in peaks if peak is not None))
    else:
        values.undefined["peak_memory"] = "MindSpore reported no pool statistics"
    kept = [report.optimizer_memory for report in reports if report.optimizer_memory is not None]
    if kept:
        values.add("optimizer_memory", lambda: max(kept))
    sent = [report.collectives for report in reports if report.collectives]
    if sent:
        values.add("communication_calls", lambda: max(len(calls) for calls in sent))
        values.add("communication_volume", lambda: max(sum(size for _, size in calls) for calls in sent) / 2**20)
    if len(reports) > 1:
        values.add("diverged_replicas", lambda: sum(r.parameter_digest != first.parameter_digest for r in reports))
    return Run(
        scenario=scenario.to_dict(),
        hardware=host.hardware,
        environment=Environment(
            hardware=host.hardware,
            architecture=host.architecture,
            mindspore=first.mindspore,
            data=first.data,
            threads=first.threads or None,
            driver=host.driver,
        ),
        machine=host.machine,
        fault=fault,
        metrics=values.defined,
        undefined=values.undefined,
        curves=first.curves,
        step_seconds=seconds,
        foreign_load=foreign_share(loads) if len(loads) == len(reports) else None,
        device_processes=host.device_processes,
        oracle_perplexity=None if first.oracle_nll is None else perplexity(first.oracle_nll, 1),
        samples=[bytes(min(token, 255) for token in sample).decode("utf-8", "replace") for sample in first.samples],
    )


def foreign_share(loads: list[Load]) -> float:
    """The share of the cores that others used while the ranks worked.

    Args:
        loads: one a rank of this machine, over nearly the same window; the first one's is taken.
    """
    first = loads[0]
    available = first.seconds * first.cores
    foreign = first.busy - sum(load.own for load in loads)
    return min(1.0, max(0.0, foreign / available)) if available > 0 else 0.0


class _Values:
    """Scalars as they are computed; one that is undefined keeps its reason."""

    def __init__(self) -> None:
        self.defined: dict[str, float] = {}
        self.undefined: dict[str, str] = {}

    def add(self, name: str, compute: Any) -> None:
        try:
            self.defined[name] = float(compute())
        except Undefined as reason:
            self.undefined[name] = str(reason)


def _speed(values: _Values, scenario: Scenario, seconds: list[float]) -> None:
    values.add("step_time", lambda: steady_step_time(seconds, WARMUP_STEPS))
    values.add("throughput", lambda: throughput(seconds, scenario.tokens_per_step, WARMUP_STEPS))
    values.add("compile_time", lambda: max(0.0, seconds[0] - steady_step_time(seconds, WARMUP_STEPS)))
    preset = PRESETS.get(scenario.model)
    if preset:
        flops = step_flops(preset, scenario.batch, scenario.sequence)
        values.add("training_flops", lambda: flops)
        values.add("achieved_flops", lambda: throughput(seconds, flops, WARMUP_STEPS))


def _text(values: _Values, scenario: Scenario, first: RankReport) -> None:
    if scenario.eval_sequences:
        values.add("validation_perplexity", lambda: perplexity(first.nll_sum or 0.0, first.nll_tokens))
    if scenario.samples:
        for n in (1, 2, 3):
            values.add(f"distinct_{n}", lambda n=n: distinct_n(first.samples, n))
        values.add("repetition", lambda: repetition_ratio(first.samples, 3))

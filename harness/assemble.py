"""Puts what the ranks reported together into one run. Pure."""

import itertools
import math
import statistics
from collections.abc import Callable, Sequence

from harness.environment import Host
from harness.errors import DataError, Undefined
from harness.evaluation import Evaluation
from harness.metrics.speed import WARMUP_STEPS, steady_step_time, step_flops, throughput
from harness.metrics.text import (
    distinct_n,
    empty_share,
    longest_repeated_span,
    perplexity,
    repetition_ratio,
    self_similarity,
)
from harness.models import sizes_of
from harness.run import Held, Load, RankReport, Run, Weights
from harness.scenario import Scenario
from harness.schedule import schedule_of
from harness.timeline import Event, exposure, median_idle, replayed, slowest, steps_of, within

STARVED = 0.3
"""Share of the time that training must wait for its rows for the data pipeline to be named."""

BETTER = 0.005
"""Share by which perplexity must fall to have improved."""

STRAGGLING = 1.5
"""How many times as long as the fastest of its kind a rank must compute to be named."""


def assemble(
    scenario: Scenario,
    host: Host,
    reports: list[RankReport],
    fault: str | None = None,
) -> Run:
    """Puts the ranks' reports together.

    Curves are those of the reporting rank, evaluation and samples those of the first; memory is the largest over ranks;
    a step is over when its slowest rank is.
    """
    reports = sorted(reports, key=lambda report: report.rank)
    if len({report.data for report in reports}) > 1:
        raise DataError(f"data={scenario.data!r} is another on each rank; draw it from scenario.seed")
    first = reports[0]
    seconds = [max(times) for times in zip(*(report.step_seconds for report in reports), strict=True)]
    beginning = min((event.start for report in reports for event in report.events), default=0.0)
    shared = oversubscribed(scenario.ranks, host)
    loads = [report.load for report in reports if report.load is not None]
    values = Values()
    reused = sum(report.reused_graphs for report in reports)
    _speed(values, scenario, seconds, reused)
    saved = [max(times) for times in itertools.zip_longest(*(r.checkpoint_seconds for r in reports), fillvalue=0.0)]
    if saved:
        values.add("checkpoint_time", lambda: statistics.median(saved))
        if scenario.checkpoints.every:
            values.add("checkpoint_share", lambda: saving(saved, seconds, scenario.checkpoints.every))
    if any(report.data_seconds for report in reports):
        values.add("data_wait", lambda: waiting(reports))
    _text(values, scenario, first)
    if scenario.guard.policy:
        values.add("skipped_updates", lambda: len(first.skipped))
    if any(report.held for report in reports):
        values.add("parameters", lambda: sum({(h.name, h.shard): h.size for r in reports for h in r.held}.values()))
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
    operators = reports[scenario.reporting_rank].operators
    if operators:
        values.add("operator_calls", lambda: sum(each.calls for each in operators))
        for name, kind in (("cast_calls", "Cast"), ("transpose_calls", "Transpose")):
            values.add(name, lambda kind=kind: sum(each.calls for each in operators if each.kind == kind))
    if len(reports) > 1:
        if any(report.held for report in reports):
            values.add("diverged_replicas", lambda: diverged(reports))
        _pipeline(values, scenario, reports, shared)
        if not scenario.step:
            _communication(values, scenario, reports, shared)
    return Run(
        scenario=scenario.to_dict(),
        hardware=host.hardware,
        environment=host.environment(first.mindspore, first.data, first.threads or None),
        machine=host.machine,
        fault=fault,
        metrics=values.defined,
        undefined=values.undefined,
        curves=_curves(reports[scenario.reporting_rank]),
        step_seconds=seconds,
        foreign_load=foreign_share(loads) if len(loads) == len(reports) else None,
        device_processes=host.device_processes,
        oversubscribed=shared,
        weights=whole_weights(reports),
        events=[_from(beginning, report.events) for report in reports] if all(r.events for r in reports) else [],
        straggler="" if shared else _straggler(scenario, reports),
        host_memory=reports[scenario.reporting_rank].host_memory,
        operators=reports[scenario.reporting_rank].operators,
        warnings=[
            *_warnings(reports, values.defined.get("data_wait", 0.0)),
            *disagreements(first.evaluations, scenario.eval_every),
        ],
        oracle_perplexity=None if first.oracle_nll is None else perplexity(first.oracle_nll, 1),
        samples=[as_text(sample) for sample in first.samples],
        reused_graphs=reused,
    )


def oversubscribed(ranks: int, host: Host) -> str:
    """Says so where more ranks than cores share the machine; empty otherwise, and where each rank has a device."""
    if host.hardware != "cpu" or ranks <= host.cores:
        return ""
    return f"{ranks} ranks share {host.cores} cores: its times say how long they wait for one"


def beyond(steady: float, seconds: Sequence[float]) -> float:
    """How much longer the first step took than a steady one."""
    return max(0.0, seconds[0] - steady)


def saving(saved: Sequence[float], seconds: Sequence[float], every: int) -> float:
    """Time of a checkpoint as a share of that of the steps between two.

    Raises:
        Undefined: there is no steady step.
    """
    return statistics.median(saved) / (every * steady_step_time(seconds, WARMUP_STEPS))


def waiting(reports: list[RankReport]) -> float:
    """Share of the steady time in which the rank that waits most waits for its rows.

    Raises:
        Undefined: no steady step was timed.
    """
    shares = []
    for report in reports:
        waited = math.fsum(report.data_seconds[WARMUP_STEPS:])
        both = waited + math.fsum(report.step_seconds[WARMUP_STEPS:])
        if both > 0:
            shares.append(waited / both)
    if not shares:
        raise Undefined("no steady step was timed, so nobody knows how long it waited for its rows")
    return max(shares)


def _warnings(reports: list[RankReport], data_wait: float) -> list[str]:
    found = list(dict.fromkeys(warning for report in reports for warning in report.warnings))
    if data_wait >= STARVED:
        found.append(
            f"the data pipeline is the bottleneck: training waits for its rows for {data_wait:.0%} of the time; "
            "use more data_workers, or prepare the data beforehand"
        )
    return found


def diverged(reports: list[RankReport]) -> int:
    """Ranks that hold a parameter, or a shard, otherwise than the first rank that holds it."""
    first: dict[tuple[str, int], str] = {}
    found = 0
    for report in reports:
        differing = [h for h in report.held if first.setdefault((h.name, h.shard), h.digest) != h.digest]
        found += bool(differing)
    return found


def whole_weights(reports: list[RankReport]) -> dict[str, Weights]:
    """Every parameter, put together from its shards; of copies, the first."""
    shards = {(held.name, held.shard): held for report in reversed(reports) for held in report.held}
    whole: dict[str, list[Held]] = {}
    for (name, _), held in sorted(shards.items()):
        whole.setdefault(name, []).append(held)
    return {
        name: Weights(
            norm=math.sqrt(math.fsum(part.squares for part in parts)),
            sketch=[math.fsum(values) for values in zip(*(part.sketch for part in parts), strict=True)],
        )
        for name, parts in whole.items()
    }


def _communication(values: "Values", scenario: Scenario, reports: list[RankReport], shared: str) -> None:
    ranks = [report.events for report in reports]
    steps = [within(ranks, step) for step in steps_of(ranks)]
    if not steps:
        return
    layout = scenario.layout
    if layout.tp > 1 or layout.optimizer_sharding or scenario.engine != "explicit":
        # Some of it is inside graphs, where nobody takes the time: there is no such metric.
        return
    if shared:
        values.undefined["exposed_communication"] = shared
        return
    shares = [[exposure(step, rank).share for step in steps] for rank in range(len(ranks))]
    values.add("exposed_communication", lambda: max(statistics.median(of_rank) for of_rank in shares))


def _pipeline(values: "Values", scenario: Scenario, reports: list[RankReport], shared: str) -> None:
    kept = [report.in_flight_memory for report in reports if report.in_flight_memory is not None]
    if kept:
        values.add("in_flight_memory", lambda: max(kept))
    if scenario.engine != "explicit" or scenario.layout.pp == 1 or not all(report.events for report in reports):
        return
    chains = [[reports[rank].events for rank in ranks] for ranks in scenario.layout.groups("pp")]
    if shared:
        values.undefined["bubble_ratio"] = shared
    else:
        values.add("bubble_ratio", lambda: statistics.mean(share for chain in chains for share in median_idle(chain)))
    schedule = schedule_of(scenario)
    values.add("replayed_bubble_ratio", lambda: max(min(replayed(schedule, chain).idle) for chain in chains))


def _straggler(scenario: Scenario, reports: list[RankReport]) -> str:
    """Ranks that hold the same part of the model do the same work, so one that takes longer is slow."""
    layout = scenario.layout
    if layout.tp > 1 or not all(report.events for report in reports):
        # Shards wait for each other inside their graphs: the slow one can't be told from its mates.
        return ""
    found = slowest([report.events for report in reports], layout.groups("dp"), STRAGGLING)
    if found is None:
        return ""
    rank, factor = found
    return f"rank {rank} holds up the others: it computes {factor:.1f} times as long as the fastest of its kind"


def _from(beginning: float, events: list[Event]) -> list[Event]:
    """Events on a clock that begins with the first of the run."""
    return [
        event._replace(start=round(event.start - beginning, 6), end=round(event.end - beginning, 6)) for event in events
    ]


def foreign_share(loads: list[Load]) -> float:
    """The share of the cores that others used while the ranks worked.

    Args:
        loads: one a rank of this machine, over nearly the same window. Ranks that were not bound looked at the same
            cores, which then count once.
    """
    looked = {tuple(load.on): load for load in loads}.values()
    available = sum(load.seconds * load.cores for load in looked)
    foreign = sum(load.busy for load in looked) - sum(load.own for load in loads)
    return min(1.0, max(0.0, foreign / available)) if available > 0 else 0.0


class Values:
    """Scalars as they are computed; one that is undefined keeps its reason."""

    def __init__(self) -> None:
        """Begins with none."""
        self.defined: dict[str, float] = {}
        self.undefined: dict[str, str] = {}

    def add(self, name: str, compute: Callable[..., float]) -> None:
        """Computes a scalar."""
        try:
            self.defined[name] = float(compute())
        except Undefined as reason:
            self.undefined[name] = str(reason)


def _speed(values: Values, scenario: Scenario, seconds: list[float], reused: int) -> None:
    values.add("step_time", lambda: steady_step_time(seconds, WARMUP_STEPS))
    values.add("throughput", lambda: throughput(seconds, scenario.tokens_per_step, WARMUP_STEPS))
    if reused:
        values.undefined["compile_time"] = f"{reused} graphs were reused from an earlier run instead of compiled"
    else:
        values.add("compile_time", lambda: beyond(steady_step_time(seconds, WARMUP_STEPS), seconds))
    sizes = sizes_of(scenario.model)
    if sizes:
        flops = step_flops(sizes, scenario.batch, scenario.sequence)
        values.add("training_flops", lambda: flops)
        values.add("achieved_flops", lambda: throughput(seconds, flops, WARMUP_STEPS))


def _text(values: Values, scenario: Scenario, first: RankReport) -> None:
    evaluation = first.evaluation
    if scenario.eval_sequences and evaluation:
        values.add("validation_perplexity", lambda: evaluation.perplexity)
        values.add("token_accuracy", lambda: evaluation.accuracy)
    if scenario.samples:
        for n in (1, 2, 3):
            values.add(f"distinct_{n}", lambda n=n: distinct_n(first.samples, n))
        values.add("repetition", lambda: repetition_ratio(first.samples, 3))
        values.add("longest_repeat", lambda: statistics.mean(longest_repeated_span(s) for s in first.samples))
        values.add("empty_outputs", lambda: empty_share([as_text(sample) for sample in first.samples]))
    if scenario.samples > 1:
        values.add("self_similarity", lambda: self_similarity(first.samples, 3))


def _curves(report: RankReport) -> dict[str, list[float]]:
    curves = dict(report.curves)
    if report.evaluations:
        curves["perplexity_curve"] = [each.perplexity for each in report.evaluations]
        curves["token_accuracy_curve"] = [each.accuracy for each in report.evaluations]
    if report.checkpoint_evaluations:
        curves["checkpoint_perplexity_curve"] = [each.perplexity for each in report.checkpoint_evaluations]
    if report.samplings:
        curves["distinct_3_curve"] = [distinct_n(samples, 3) for samples in report.samplings]
    return curves


def disagreements(evaluations: Sequence[Evaluation], every: int) -> list[str]:
    """Where perplexity got better from one evaluation to the next, and accuracy worse beyond what chance explains.

    Args:
        evaluations: one after the other, on the same tokens.
        every: steps between them.
    """
    found = []
    for number, (before, after) in enumerate(itertools.pairwise(evaluations), start=1):
        if not (before.tokens and after.tokens):
            continue
        share = before.accuracy
        # Two standard errors of the difference, as if the two were of different tokens: wider than need be.
        chance = 2 * math.sqrt(2 * share * (1 - share) / before.tokens)
        if after.perplexity < (1 - BETTER) * before.perplexity and after.accuracy < share - chance:
            found.append(
                f"between steps {number * every} and {(number + 1) * every} perplexity improved from "
                f"{before.perplexity:.6g} to {after.perplexity:.6g} and token accuracy fell from {share:.2%} to "
                f"{after.accuracy:.2%}: they disagree on whether the model got better"
            )
    return found


def as_text(sample: Sequence[int]) -> str:
    """A sample's tokens as text; bytes that are no text are replaced."""
    return bytes(min(token, 255) for token in sample).decode("utf-8", "replace")

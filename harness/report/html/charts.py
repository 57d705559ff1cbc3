"""What the page draws, as plain values: curves with their bands, timelines, times, memory, trends."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.gate.verdict import Status, Verdict
from harness.history.courses import Course
from harness.metrics.registry import METRICS
from harness.report.gantt import gantt
from harness.report.html.view import labels, title
from harness.results import Results, TestResult
from harness.run import Run
from harness.timeline import steps_of

ALWAYS = (
    "loss", "grad_norm", "update_norm", "perplexity_curve", "checkpoint_perplexity_curve", "distinct_3_curve",
)  # fmt: skip
"""Curves that are drawn; others only where they did not pass."""

MEMORY = ("peak_memory", "optimizer_memory", "in_flight_memory")
KINDS = ("compute", "send", "receive", "collective", "wait")


def charts(results: Results, courses: Sequence[Course]) -> dict[str, Any]:
    """Everything that is drawn, by test; what several tests share stands once.

    Args:
        results: of the session.
        courses: of the values of its tests.
    """
    used = {key for test in results.tests for key in test.last.runs if key in results.runs}
    runs = {key: results.runs[key] for key in sorted(used)}
    sessions = sorted({(point.started, point.commit) for course in courses for point in course.points})
    numbers = {session: number for number, session in enumerate(sessions)}
    tests = {test.nodeid: _test(test, runs) for test in results.tests}
    drawn = [{c["name"] for test in tests.values() for c in test["curves"] if c["run"] == key} for key in runs]
    trends: dict[str, list[dict[str, Any]]] = {}
    for course in courses:
        if len(course.points) > 1:
            trends.setdefault(course.series.test, []).append(_trend(course, numbers))
    return {
        "sessions": [[started, commit[:10]] for started, commit in sessions],
        "curves": {
            key: {name: _plain(run.curves[name]) for name in sorted(names)}
            for (key, run), names in zip(runs.items(), drawn, strict=True)
        },
        "timelines": {key: gantt(run.events, title(run, ())) for key, run in runs.items() if steps_of(run.events)},
        "tests": {nodeid: {**test, "trends": trends.get(nodeid, [])} for nodeid, test in tests.items()},
    }


def _test(test: TestResult, runs: Mapping[str, Run]) -> dict[str, Any]:
    verdicts = test.last.verdicts
    keys = [key for key in dict.fromkeys(test.last.runs) if key in runs]
    names = {key: title(runs[key], labels(verdicts, key)) for key in keys}
    return {
        "curves": [curve for key in keys for curve in _curves(key, names[key], runs[key], verdicts)],
        "timelines": [key for key in keys if steps_of(runs[key].events)],
        "times": [_times(names[key], runs[key]) for key in keys if steps_of(runs[key].events)],
        "memory": _memory([(names[key], runs[key]) for key in keys]),
    }


def _curves(key: str, name: str, run: Run, verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    found = []
    # Checked under several labels, a curve is shown as by the one that fared worst.
    mine = sorted((v for v in verdicts if v.run == key), key=lambda verdict: verdict.rank, reverse=True)
    judged = {verdict.metric: verdict for verdict in mine}
    for curve in run.curves:
        verdict = judged.get(curve)
        unusual = verdict is not None and verdict.status not in (Status.PASS, Status.NO_BASELINE)
        if curve in ALWAYS or unusual:
            unit = METRICS[curve].unit if curve in METRICS else ""
            shown: dict[str, Any] = {"run": key, "name": curve, "title": name, "unit": unit}
            shown["steps"] = run.steps.get(curve, [])
            if verdict:
                shown |= {"status": verdict.status.value, "approved": _plain(verdict.approved)}
                shown["judged"] = verdict.steps
                shown |= {"relative": verdict.relative or 0.0, "absolute": verdict.absolute or 0.0}
                shown["step"] = verdict.step if unusual else None
            found.append(shown)
    return found


def _times(name: str, run: Run) -> dict[str, Any]:
    """Milliseconds that each rank spends on each kind of thing in one of the recorded steps, on average."""
    steps = steps_of(run.events)
    totals = {
        kind: [
            1e3 * sum(e.end - e.start for e in events if e.kind == kind and e.step in steps) / len(steps)
            for events in run.events
        ]
        for kind in KINDS
    }
    return {"title": name, "kinds": {kind: _plain(values) for kind, values in totals.items() if any(values)}}


def _memory(runs: Sequence[tuple[str, Run]]) -> list[dict[str, Any]]:
    """MiB of each run, by metric."""
    return [
        {
            "metric": metric,
            "runs": [name for name, _ in having],
            "values": _plain(run.metrics[metric] for _, run in having),
        }
        for metric in MEMORY
        if (having := [(name, run) for name, run in runs if metric in run.metrics])
    ]


def _trend(course: Course, numbers: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    series, trend = course.series, course.trend
    return {
        "title": f"{series.label}.{series.metric} on {series.machine}",
        "unit": METRICS[series.metric].unit if series.metric in METRICS else "",
        "values": _plain(point.value for point in course.points),
        "statuses": [point.status for point in course.points],
        "sessions": [numbers[point.started, point.commit] for point in course.points],
        "anchor": _rounded(trend.anchor),
        "segments": [[part.start, part.end, _rounded(part.center)] for part in trend.segments],
        "drifted": trend.drifted,
        "approvals": [[approval.when, approval.reason] for approval in course.approvals],
    }


def _plain(values: Iterable[float]) -> list[float | None]:
    """Six digits of each; None for what is no finite number."""
    return [_rounded(value) for value in values]


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None

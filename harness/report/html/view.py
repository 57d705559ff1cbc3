"""What the page says in words: its tests in their order, and what of each is shown."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from harness.gate.verdict import WORST_FIRST, Status, Verdict
from harness.report.terminal import advice, change, number, outcome
from harness.results import Results, TestResult
from harness.run import Run

ROWS = 30
"""Of what got worse; the tests below have the rest."""

SAMPLES = 8
OUTCOMES = ("failed", "error", "flaky", "passed", "skipped")


@dataclass(frozen=True)
class Row:
    """A verdict as text."""

    name: str
    baseline: str
    value: str
    change: str
    status: str
    fails: bool
    advisory: bool
    reason: str
    environment: list[str]

    @classmethod
    def of(cls, verdict: Verdict) -> "Row":
        """The row of a verdict."""
        return cls(
            name=f"{verdict.label}.{verdict.metric}" + (f" @{verdict.step}" if verdict.step is not None else ""),
            baseline=number(verdict.baseline, verdict.unit),
            value=number(verdict.value, verdict.unit),
            change=change(verdict),
            status=verdict.status.value,
            fails=verdict.fails,
            advisory=verdict.lane == "advisory",
            reason=verdict.reason,
            environment=verdict.environment_changes,
        )


@dataclass(frozen=True)
class RunView:
    """A run of a test."""

    title: str
    scenario: str
    """All its fields, as JSON."""

    environment: str
    notes: list[str]
    samples: list[str]
    log: Sequence[str]


@dataclass(frozen=True)
class TestView:
    """A test."""

    __test__ = False

    nodeid: str
    link: str
    """Fragment that leads to it."""

    hardware: str
    outcome: str
    seconds: float
    worst: Row | None
    rows: list[Row]
    message: str
    earlier: list[str]
    """What attempts before the last came to."""

    runs: list[RunView]
    tags: list[str]
    """Its outcome and every status among its verdicts."""


@dataclass(frozen=True)
class Page:
    """The page."""

    good: bool
    verdict: str
    facts: list[str]
    """Commit, time, machines."""

    advice: list[str]
    worse: list[tuple[TestView, Row]]
    more: int
    """Rows of what got worse that did not fit."""

    broken: list[TestView]
    """Tests that failed by something else than a value."""

    tests: list[TestView]
    tags: list[tuple[str, int]]
    hardware: list[tuple[str, int]]


def view(results: Results, logs: Mapping[str, Sequence[str]]) -> Page:
    """What the page says.

    Args:
        results: of the session.
        logs: last lines of what ranks wrote, by the run's key.
    """
    tests = sorted((_test(test, results, logs) for test in results.tests), key=_order)
    by_name = {test.nodeid: test for test in tests}
    worse = [(by_name[name], Row.of(verdict)) for name, verdict in results.verdicts if verdict.fails]
    counts = Counter(tag for test in tests for tag in test.tags)
    known = [*OUTCOMES, *(status.value for status in WORST_FIRST)]
    order = [*sorted(counts.keys() - set(known)), *known]
    return Page(
        good=results.is_good,
        verdict=outcome(results),
        facts=_facts(results),
        advice=advice(results),
        worse=worse[:ROWS],
        more=max(0, len(worse) - ROWS),
        broken=[t for t in tests if t.outcome in ("failed", "error") and not any(row.fails for row in t.rows)],
        tests=tests,
        tags=[(tag, counts[tag]) for tag in order if counts[tag]],
        hardware=sorted(Counter(test.hardware for test in tests).items()),
    )


def _order(test: TestView) -> tuple[int, int, str]:
    worst = WORST_FIRST.index(Status(test.worst.status)) if test.worst else len(WORST_FIRST)
    # Another plugin may know outcomes that we do not: they want a look.
    return OUTCOMES.index(test.outcome) if test.outcome in OUTCOMES else 0, worst, test.nodeid


def _facts(results: Results) -> list[str]:
    commit = f"commit {results.commit[:10]}" if results.commit else "no commit"
    facts = [f"{commit}{', with uncommitted changes' if results.dirty else ''}", results.started]
    machines = {(run.hardware, run.environment.mindspore, run.machine) for run in results.runs.values()}
    return facts + [
        f"{hardware}, MindSpore {mindspore}, machine {key}" for hardware, mindspore, key in sorted(machines)
    ]


def _test(test: TestResult, results: Results, logs: Mapping[str, Sequence[str]]) -> TestView:
    last = test.last
    verdicts = sorted(last.verdicts, key=lambda verdict: verdict.rank)
    rows = [Row.of(verdict) for verdict in verdicts]
    found = "flaky" if test.flaky else last.outcome
    return TestView(
        nodeid=test.nodeid,
        link=quote(test.nodeid),
        hardware=test.hardware,
        outcome=found,
        seconds=last.seconds,
        worst=rows[0] if rows else None,
        rows=rows,
        message=last.message,
        earlier=[f"{attempt.outcome}: {attempt.message}" for attempt in test.attempts[:-1]],
        runs=[
            _run(results.runs[key], labels(verdicts, key), logs.get(key, ()) if test.failed or test.flaky else ())
            for key in dict.fromkeys(last.runs)
            if key in results.runs
        ],
        tags=[found, *dict.fromkeys(row.status for row in rows)],
    )


def labels(verdicts: Sequence[Verdict], key: str) -> list[str]:
    """Under which a run was checked."""
    return list(dict.fromkeys(verdict.label for verdict in verdicts if verdict.run == key))


def title(run: Run, names: Sequence[str]) -> str:
    """A run's name: its labels, what it trained, and in which layout."""
    what = run.scenario
    layout = {name: size for name, size in what.get("layout", {}).items() if name in ("dp", "tp", "pp") and size != 1}
    parts = [
        ", ".join(names),
        str(what.get("model") or what.get("name") or " ".join(what.get("command", ()))),
        " × ".join(f"{name} {n}" for name, n in layout.items()),
    ]
    steps = what.get("steps")
    return " · ".join(part for part in (*parts, f"{steps} steps" if steps else "", run.fault or "") if part)


def _run(run: Run, names: Sequence[str], log: Sequence[str]) -> RunView:
    values = run.environment.model_dump(exclude_none=True)
    return RunView(
        title=title(run, names),
        scenario=json.dumps(run.scenario, indent=1, ensure_ascii=False),
        environment=", ".join(f"{name} {value}" for name, value in values.items() if value != ""),
        notes=[note for note in (run.oversubscribed, run.straggler, *run.warnings) if note],
        samples=run.samples[:SAMPLES],
        log=log,
    )

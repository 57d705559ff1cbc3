"""Tables for people at a terminal."""

from collections import Counter
from collections.abc import Sequence
from io import StringIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.gate.verdict import Status, Verdict
from harness.results import Results

ROWS = 30
"""Rows of the table at a session's end, unless pytest is verbose."""

VALUES_WIDTH = 98
"""Characters that the columns before the test's name take at most."""

WIDE = 400
"""Width of a console that cuts no column: a value cut short is worse than a line that wraps."""

_STYLES = {
    Status.PASS: "green",
    Status.IMPROVED: "cyan",
    Status.NO_BASELINE: "yellow",
    Status.INCONCLUSIVE: "yellow",
    Status.XFAIL: "yellow",
}


def number(value: float | None, unit: str = "") -> str:
    """A value with its unit, in six digits."""
    return "–" if value is None else f"{value:.6g} {unit}".rstrip()


def shortened(text: str, room: int) -> str:
    """A text cut in its middle, so that a test's name keeps its first words and its hardware."""
    return text if len(text) <= room else f"{text[: room - 8]}…{text[-7:]}"


def change(verdict: Verdict) -> str:
    """The relative change in percent."""
    return "–" if verdict.change is None else f"{100 * verdict.change:+.2f} %"


def verdict_table(rows: Sequence[tuple[str, Verdict]], width: int) -> Table:
    """Metric, baseline, value, change and verdict of each row, in the order given, and the test it belongs to.

    Args:
        rows: (test, verdict) pairs.
        width: characters a line; the test's name gets what the values leave over.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("metric", no_wrap=True)
    for heading in ("baseline", "value", "change"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("test", no_wrap=True)
    room = max(24, width - VALUES_WIDTH)
    for test, verdict in rows:
        status = verdict.status.value + (" (advisory)" if verdict.lane == "advisory" else "")
        table.add_row(
            escape(f"{verdict.label}.{verdict.metric}" + (f" @{verdict.step}" if verdict.step else "")),
            number(verdict.baseline),
            number(verdict.value, verdict.unit),
            change(verdict),
            f"[{_STYLES.get(verdict.status, 'red')}]{status}[/]",
            escape(shortened(test.rpartition("::")[2], room)),
        )
    return table


def session_summary(results: Results, width: int, color: bool, verbose: bool) -> str:
    """The table at a session's end, worst first, then what to do next."""
    rows = results.verdicts
    shown = rows if verbose else rows[:ROWS]
    console = Console(file=StringIO(), width=WIDE, force_terminal=color, no_color=not color, highlight=False)
    console.print(verdict_table(shown, width))
    if len(shown) < len(rows):
        console.print(f"… and {len(rows) - len(shown)} more, none worse (-v shows all)", soft_wrap=True)
    counts = Counter(verdict.status.value for _, verdict in rows)
    tally = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    for line in (f"{len(rows)} values of {len(results.tests)} tests: {tally}", *advice(results)):
        console.print(line, markup=False, soft_wrap=True)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def advice(results: Results) -> list[str]:
    """What a reader should do about the verdicts."""
    verdicts = [verdict for _, verdict in results.verdicts]
    lines = []
    if results.fault:
        faulty = sum(run.fault is not None for run in results.runs.values())
        lines.append(f"{results.fault} was planted into {faulty} of {len(results.runs)} runs, where it has an effect")
    if any(v.status is Status.NO_BASELINE and v.scope == "machine" for v in verdicts):
        lines.append(
            "times were measured but not judged, because none are approved for this machine; "
            'record them with: harness baseline approve --reason "…"'
        )
    if any(v.status is Status.NO_BASELINE and v.scope != "machine" for v in verdicts):
        lines.append(
            'new values have no baseline: look with "harness baseline diff", accept with "harness baseline approve"'
        )
    if any(v.status is Status.IMPROVED for v in verdicts):
        lines.append("some values improved: approve them, so that losing the gain again is noticed")
    flaky = [test.nodeid for test in results.tests if test.flaky]
    if flaky:
        lines.append(f"flaky, passed only when run again: {', '.join(flaky)}")
    return lines


def outcome(results: Results) -> str:
    """The verdict on a session: how many tests failed, of how many, and what of."""
    outcomes = Counter(test.last.outcome for test in results.tests)
    bad = outcomes["failed"] + outcomes["error"]
    counts = Counter(verdict.status for _, verdict in results.verdicts if verdict.fails)
    tally = ", ".join(f"{count} {status.value}" for status, count in counts.most_common())
    tests = f"{bad} of {len(results.tests)} tests failed" if bad else f"{outcomes['passed']} tests passed"
    skipped = f", {outcomes['skipped']} skipped" if outcomes["skipped"] else ""
    return f"{tests}{skipped}; {len(results.verdicts)} values judged{': ' + tally if tally else ''}"


def failure_text(verdicts: Sequence[Verdict]) -> str:
    """The reason a test failed at the gate: one line a metric, worst first, plain text."""
    lines = [f"{len(verdicts)} value(s) fell short of the baseline:"]
    for verdict in verdicts:
        head = f"{verdict.status.value:<20} {verdict.label}.{verdict.metric}"
        if verdict.value is not None and verdict.baseline is not None:
            head += f": {number(verdict.baseline)} → {number(verdict.value, verdict.unit)} ({change(verdict)})"
        lines.append(f"{head}: {verdict.reason}")
    return "\n".join(lines)

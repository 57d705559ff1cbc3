"""A session for a pull request: worst first, details folded, within what a comment may hold."""

import re
from collections.abc import Iterator, Sequence

from harness.gate.verdict import Status, Verdict
from harness.report.terminal import advice, change, number, outcome
from harness.results import Results, TestResult

LIMIT = 65_536
"""Characters of a comment on GitHub; GitLab allows more."""

SUMMARY_LIMIT = 250_000
"""Characters of a job's summary: a mebibyte, of which a character may take four bytes."""

ROWS = 30
MESSAGE = 2_000
"""Characters of a test's message that are shown, from its end, where errors stand."""

_ACTIVE = re.compile(r"[\\`*_\[\]#!|~<>&@$]")


def plain(text: str) -> str:
    """A text in which nothing is markup, a mention, or a line of its own."""
    return _ACTIVE.sub(lambda found: f"&#{ord(found[0])};", " ".join(text.split()))


def markdown(results: Results, limit: int = LIMIT) -> str:
    """The report of a session.

    Args:
        results: of the session.
        limit: characters that it may take; what comes last is left out first, and said to be.
    """
    parts = [headline(results), *_machine(results)]
    parts += [f"- {plain(line)}" for line in advice(results)]
    parts += ["", *_table(results)]
    text = "\n".join(parts) + "\n"
    room = limit - len(text) - 200
    left_out = 0
    for test in _worst_first(results.tests):
        details = "\n".join(_details(test, results)) + "\n"
        if len(details) > room:
            left_out += 1
            continue
        text, room = text + details, room - len(details)
    if left_out:
        text += f"\nDetails of {left_out} more tests did not fit; they are in results.json.\n"
    if len(text) > limit:
        end = "\n\nCut short; all of it is in results.json.\n"
        text = text[: limit - len(end)].rpartition("\n")[0] + end
    return text


def headline(results: Results) -> str:
    """The verdict in a line."""
    mark = "✅" if results.is_good else "❌"
    return f"## {mark} {outcome(results)}\n"


def _machine(results: Results) -> Iterator[str]:
    commit = f"commit {plain(results.commit[:10])}" if results.commit else "no commit"
    yield f"{commit}{', with uncommitted changes' if results.dirty else ''}, {plain(results.started)}"
    machines = {(run.hardware, run.environment.mindspore, run.machine) for run in results.runs.values()}
    for hardware, mindspore, machine in sorted(machines):
        yield f"- {plain(hardware)}, MindSpore {plain(mindspore)}, machine {plain(machine)}"


def _table(results: Results) -> Iterator[str]:
    rows = [(test, verdict) for test, verdict in results.verdicts if verdict.status is not Status.PASS]
    if not rows:
        return
    yield "| verdict | metric | baseline | value | change | test |"
    yield "|---|---|---:|---:|---:|---|"
    for test, verdict in rows[:ROWS]:
        cells = (
            _status(verdict),
            plain(f"{verdict.label}.{verdict.metric}") + (f" @{verdict.step}" if verdict.step else ""),
            number(verdict.baseline),
            number(verdict.value, verdict.unit),
            change(verdict),
            plain(test.rpartition("::")[2]),
        )
        yield f"| {' | '.join(cells)} |"
    if len(rows) > ROWS:
        yield ""
        yield f"… and {len(rows) - ROWS} more, none worse."


def _status(verdict: Verdict) -> str:
    name = f"**{verdict.status.value}**" if verdict.fails else verdict.status.value
    return f"{name} (advisory)" if verdict.lane == "advisory" else name


def _worst_first(tests: Sequence[TestResult]) -> list[TestResult]:
    return sorted(
        (test for test in tests if test.failed or test.flaky), key=lambda test: (not test.failed, test.nodeid)
    )


def _details(test: TestResult, results: Results) -> Iterator[str]:
    what = "flaky" if test.flaky else test.last.outcome
    yield f"\n<details><summary>{plain(test.nodeid)}: {what}</summary>\n"
    for verdict in test.last.verdicts:
        if verdict.fails or verdict.environment_changes:
            where = f"{plain(verdict.label)}.{plain(verdict.metric)}"
            yield f"- {_status(verdict)} {where}: {plain(verdict.reason)}"
            for moved in verdict.environment_changes:
                yield f"  - environment: {plain(moved)}"
    message = test.last.message[-MESSAGE:]
    if message:
        yield ""
        # Indented code: no fence that a message could end.
        yield from (f"    {line}" for line in _lines(message))
        yield ""
    warnings = dict.fromkeys(text for key in test.last.runs for text in _warnings(results, key))
    yield from (f"- {plain(text)}" for text in warnings)
    yield "\n</details>"


def _lines(message: str) -> Iterator[str]:
    for line in message.splitlines():
        yield "".join(character if character.isprintable() else "�" for character in line)


def _warnings(results: Results, key: str) -> list[str]:
    run = results.runs.get(key)
    return run.warnings if run else []

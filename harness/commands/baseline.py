"""``harness baseline``: what is approved, what a session would change, and taking it over."""

import fnmatch
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from harness import results
from harness.errors import BaselineError
from harness.gate import approve as approving
from harness.gate import baseline
from harness.gate.baseline import BaselineFile
from harness.gate.verdict import Status, Verdict
from harness.locks import lock_folder
from harness.orphans import is_log, module_of
from harness.orphans import orphans as find_orphans
from harness.provenance import git, uncommitted
from harness.results import TestResult


@dataclass(frozen=True)
class Change:
    """What approving one test of a session would do."""

    baseline: Path
    """The file, relative to the baselines folder."""

    candidates: BaselineFile
    scopes: dict[str, set[str]]
    """Label → scopes to take over."""

    verdicts: list[tuple[str, Verdict]]
    """(test, verdict) of what is behind the change."""


def stored(folder: Path) -> Iterator[tuple[Path, BaselineFile]]:
    """Every baseline file below a folder, with its path relative to it."""
    for path in sorted(folder.rglob("*.json")):
        content = baseline.read(path)
        if content is not None:
            yield path.relative_to(folder), content


@dataclass(frozen=True)
class Selection:
    """Which of a session's values are taken."""

    only: str | None = None
    """Part of, or glob on, test ids or baseline files."""

    everything: bool = False
    """Also values that are within tolerance of what is stored; times are then added as a further run."""

    tighten: bool = False
    """Improvements alone; what got worse stays to be looked at."""

    def covers(self, test: TestResult) -> bool:
        """Whether a test is among them."""
        only = self.only
        return not only or any(only in name or fnmatch.fnmatch(name, only) for name in (test.nodeid, test.baseline))


def changes(session: Path, folder: Path, selection: Selection = Selection()) -> list[Change]:
    """What a session would change in the baselines.

    Args:
        session: its folder.
        folder: of the baselines.
        selection: which values.

    Raises:
        ResultsError: the session has no results.
    """
    found = []
    for test in results.read(session).tests:
        if not selection.covers(test):
            continue
        candidates = baseline.read(session / "candidates" / test.baseline) if test.baseline else None
        if candidates is None:
            continue
        old = baseline.read(folder / test.baseline)
        verdicts = test.last.verdicts
        if selection.tighten:
            verdicts = [v for v in verdicts if v.status is Status.IMPROVED]
            candidates = _improvements(candidates, old, verdicts)
        else:
            candidates = _held_back(candidates, old, verdicts, selection.everything)
        scopes = {}
        for label, new in candidates.runs.items():
            wanted = _unapproved(verdicts, label)
            if selection.everything:
                wanted |= {"numeric"} if "machine" in wanted else {"numeric", "samples"}
            scopes[label] = wanted & approving.moved_scopes(old.runs.get(label) if old else None, new)
        if any(scopes.values()) or (old and set(old.runs) - set(candidates.runs)):
            shown = [(test.nodeid, verdict) for verdict in verdicts if not verdict.as_approved]
            found.append(Change(Path(test.baseline), candidates, scopes, shown))
    return found


def _improvements(new: BaselineFile, old: BaselineFile | None, improved: list[Verdict]) -> BaselineFile:
    runs = dict(old.runs) if old else {}
    for label, former in runs.items():
        names = {verdict.metric for verdict in improved if verdict.label == label}
        if names and label in new.runs:
            runs[label] = approving.improvements(new.runs[label], former, names)
    return BaselineFile(runs=runs)


def _held_back(new: BaselineFile, old: BaselineFile | None, verdicts: list[Verdict], everything: bool) -> BaselineFile:
    runs = {}
    for label, record in new.runs.items():
        known = {v.metric for v in verdicts if v.label == label and v.status is Status.XFAIL}
        passed = {v.metric for v in verdicts if v.label == label and v.scope == "machine" and v.as_approved}
        former = old.runs.get(label) if old else None
        runs[label] = approving.held_back(record, former, known, set() if everything else passed)
    return BaselineFile(runs=runs)


def _unapproved(verdicts: list[Verdict], label: str) -> set[str]:
    moved = [v for v in verdicts if v.label == label and not v.as_approved and v.status is not Status.XFAIL]
    return {"machine" if v.scope == "machine" else "numeric" for v in moved}


def approve(
    session: Path,
    folder: Path,
    reason: str,
    by: str | None = None,
    selection: Selection = Selection(),
    dirty: bool = False,
) -> list[Change]:
    """Takes a session's values over into the baselines.

    Args:
        session: folder of the session whose values are taken.
        folder: of the baselines.
        reason: why the values are right.
        by: who approves; git's ``user.name`` by default.
        selection: which values.
        dirty: also where something is not committed; the approval then says so.

    Returns:
        What was changed.

    Raises:
        BaselineError: refused: under CI, without a reason or a name, with uncommitted changes, or for a non-finite
            value; nothing is written.
    """
    if os.environ.get("CI"):
        raise BaselineError("approving is refused under CI: baselines change in a reviewed commit, not in a job")
    name = by if by is not None else git("config", "user.name")
    stamp = approving.approval(name, reason, results.read(session).commit)
    unclean = _unclean(session, folder)
    if unclean and not dirty:
        raise BaselineError(f"{unclean}: commit first, so that the approval can name what it is for, or give --dirty")
    if unclean:
        stamp = stamp.model_copy(update={"commit": f"{stamp.commit}-dirty"})
    with FileLock(lock_folder() / "approve.lock"):
        found = changes(session, folder, selection)
        merged = [
            approving.merge(baseline.read(folder / change.baseline), change.candidates.runs, stamp, change.scopes)
            for change in found
        ]
        for change, content in zip(found, merged, strict=True):
            baseline.write(folder / change.baseline, content)
    return found


def _unclean(session: Path, folder: Path) -> str:
    """Why the commit that an approval would name is not what was measured; empty where it is."""
    if results.read(session).dirty:
        return "the session ran with uncommitted changes"
    changed = uncommitted(folder.absolute().parent, folder.absolute(), session.resolve().parents[1])
    return f"{len(changed)} file(s) are not committed ({changed[0].strip()} …)" if changed else ""


def orphans(folder: Path, root: Path) -> list[Path]:
    """Baseline files whose test no longer exists.

    Raises:
        BaselineError: the suites can't be collected, so nothing can be said.
    """
    files = [path for path, _ in stored(folder) if not is_log(path)]
    modules = sorted({str(module) for module in (module_of(file, root) for file in files) if module})
    if not files:
        return []
    if not modules and not (root / "suites").is_dir():
        raise BaselineError("no test module of any baseline is here; run this in the project's folder")
    if not modules:
        return files
    collected = subprocess.run(
        [sys.executable, "-m", "harness.commands.collect", *modules],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        known = json.loads(collected.stdout.splitlines()[-1])
        asked, skipped = known["asked"], known["skipped"]
    except (ValueError, IndexError, TypeError, KeyError):
        raise BaselineError(f"the suites can't be collected (exit {collected.returncode}); mend that first") from None
    return [Path(file) for file in find_orphans(files, asked, skipped, modules, root)]

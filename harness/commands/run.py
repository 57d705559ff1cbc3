"""``harness run --from-log``: what a finished training left, judged as a session of one test."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness import __version__, configuration
from harness.anonymity import anonymous
from harness.environment import Host
from harness.external import External
from harness.files import write_atomically
from harness.gate import baseline
from harness.gate.checks import Gate
from harness.gate.verdict import WORST_FIRST, Status
from harness.history.session import recent
from harness.observed import observed
from harness.orphans import LOGS
from harness.provenance import git, uncommitted
from harness.publish import show, store
from harness.readers.place import RUN, read
from harness.results import Attempt, Results, TestResult
from harness.run import Run

_EXIT = {Status.INVALID: 5, Status.NO_BASELINE: 4, Status.INCONCLUSIVE: 3}
"""Exit status of what fails by it; 1 by anything else."""


@dataclass(frozen=True)
class Finished:
    """A training that has ended."""

    place: Path
    """Its log, or folder."""

    label: str
    """Names it among the baselines."""

    hardware: str
    machine: str
    """Names the kind of machine that it ran on; times are judged by those of the same name."""

    mindspore: str
    """Version."""

    architecture: str
    """Of its processors."""

    ranks: int = 1
    tokens_per_step: int | None = None


def judge(
    finished: Finished, root: Path, folder: Path, baselines: Path, history: str | None
) -> tuple[Results, list[str]]:
    """Compares a finished training with the baseline of its label, and leaves a session that can be approved.

    Args:
        finished: the training.
        root: project.
        folder: of the session.
        baselines: folder of the approved values.
        history: URL of the history; None for none.

    Returns:
        The session's results, and what could not be stored or shown.

    Raises:
        ResultsError: nothing can be read, or the session can't be written.
        ScenarioError, BaselineError, PolicyError: the label, a number, the baseline or the configuration is wrong.
    """
    nodeid = f"{LOGS}::{finished.label}[{finished.hardware}]"
    path = baseline.baseline_path(nodeid, finished.hardware)
    external = External(name=finished.label, ranks=finished.ranks, tokens_per_step=finished.tokens_per_step)
    host = Host(finished.hardware, finished.architecture, finished.machine)
    run = observed(read(finished.place), external, host, finished.mindspore)
    run.warnings = [anonymous(text, root) for text in run.warnings]
    run.key = f"{finished.hardware}-{external.hash}"
    gate = Gate(
        baseline.read(baselines / path),
        configuration.read(root),
        nodeid,
        lambda label, run, since: recent(history, nodeid, label, run, since) if history else {},
        finished.hardware,
    )
    gate.check(run)
    gate.close(complete=True)
    attempt = Attempt(outcome="failed" if gate.failures else "passed", verdicts=gate.verdicts, runs=[run.key])
    results = Results(
        started=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        harness=__version__,
        commit=git("-C", str(root), "rev-parse", "HEAD"),
        dirty=bool(uncommitted(root, baselines, folder.parent.parent)),
        tests=[TestResult(nodeid=nodeid, hardware=finished.hardware, baseline=str(path), attempts=[attempt])],
        runs={run.key: run},
    )
    write_atomically(folder / "runs" / run.key / RUN, run.model_dump_json(indent=1))
    baseline.write(folder / "candidates" / path, baseline.BaselineFile(runs=gate.candidates))
    results.write(folder)
    problems = store(history, folder, results, f"log-{_digest(run)}")
    return results, problems + show(history, folder, results, baselines, root)


def _digest(run: Run) -> str:
    """Of what was read, so that a log that is judged again is no further run."""
    return hashlib.sha256(repr((run.curves, run.steps, run.step_seconds, run.scenario)).encode()).hexdigest()[:16]


def exit_status(results: Results) -> int:
    """0 where nothing fails; else of the worst: 5 invalid, 1 regressed, 4 no baseline, 3 inconclusive.

    A training of which nothing was ever approved has no baseline, even where times alone were judged.
    """
    failing = {verdict.status for _, verdict in results.verdicts if verdict.fails}
    if {verdict.status for _, verdict in results.verdicts} == {Status.NO_BASELINE}:
        return 4
    return _EXIT.get(min(failing, key=WORST_FIRST.index), 1) if failing else 0

"""One session's runs: each scenario is trained once, whoever asks for it, and one at a time on a device."""

import hashlib
import itertools
import json
import re
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from harness.anonymity import anonymous
from harness.audit.compile import audit
from harness.checkpoints.store import FOLDER as CHECKPOINTS
from harness.devices import Devices, find
from harness.errors import HardwareError, LaunchError, ResultsError, ScenarioError
from harness.external import External
from harness.faults import Fault
from harness.files import write_atomically
from harness.launch import slurm
from harness.launch.code import Code
from harness.launch.placement import HERE, Placement
from harness.launch.supervise import RankFailure
from harness.measure import ShowProgress, measure, untimed
from harness.report.gantt import gantt
from harness.report.trace import chrome_trace
from harness.run import Run
from harness.scenario import Scenario
from harness.timeline import steps_of

FAILURE = "failure.json"
TRACE = "trace.json"
"""What ranks did when, for Perfetto."""

GANTT = "timeline.svg"
"""One step of it as a picture."""


class OversubscribedWarning(UserWarning):
    """More ranks than cores: numbers are right, times are not gated."""


class TrainingWarning(UserWarning):
    """Training that goes on, but not as its scenario reads, or not as fast as it could."""


class StragglerWarning(UserWarning):
    """One rank holds the others up."""


@dataclass
class Session:
    """What all tests of a session share, also over xdist workers: a folder."""

    root: Path
    """Project folder: user modules, relative text files, baselines."""

    folder: Path
    """This session's own, below ``.harness/runs``."""

    deadline: float
    """Seconds a run may take, unless a test says otherwise."""

    fault: Fault | None
    show_progress: ShowProgress
    placement: Placement = HERE
    """Where ranks run."""

    deadlines: dict[str, float] = field(default_factory=dict)
    """Scenario hash → seconds that a test of this process allowed for it."""

    def deadline_of(self, scenario: Scenario | External) -> float:
        """Seconds that a run of a scenario may take."""
        return self.deadlines.get(scenario.hash, self.deadline)

    def devices(self, hardware: str) -> Devices:
        """What ranks may be placed on."""
        if self.placement.launcher == "slurm":
            return slurm.find(self.placement.ranks_per_node)
        return find(hardware)

    def prepare(self) -> None:
        """Makes the session's folder.

        Raises:
            ResultsError: it can't be made.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(
                f"results folder {self.folder} can't be made: {error.strerror}; name a writable one with --results"
            ) from None

    @property
    def graphs(self) -> Path:
        """Folder of the compiled graphs that its untimed runs share."""
        return self.folder / "graphs"

    def remove_graphs(self) -> None:
        """Remove the compiled graphs, which no other session may use."""
        shutil.rmtree(self.graphs, ignore_errors=True)

    def run_folder(self, key: str) -> Path:
        """Folder of one run: its request, logs, reports, and ``run.json``."""
        return self.folder / "runs" / key

    def finished(self, key: str) -> Run | None:
        """A run that is done; None while it is not."""
        try:
            return Run.model_validate_json((self.run_folder(key) / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None

    @contextmanager
    def writing(self, key: str) -> Iterator[None]:
        """Holds a run for the one test, of all workers, that makes it.

        Raises:
            ResultsError: its folder can't be written.
        """
        folder = self.run_folder(key)
        try:
            folder.parent.mkdir(exist_ok=True)
            with FileLock(f"{folder}.lock"):
                yield
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise ResultsError(
                f"run {key} can't be written: {error.strerror}{where}; free the disk or use --results"
            ) from None


@dataclass
class Trainer:
    """The ``trainer`` fixture."""

    session: Session
    hardware: str
    test: str
    """Node id of the test that it serves."""

    untimed: bool = False
    """Whether its trainings have no times; see ``harness.marks.untimed``."""

    keys: list[str] = field(default_factory=list)
    """Runs that the test asked for."""

    @property
    def folder(self) -> Path:
        """Folder of the run that was asked for last, whether or not it came to its end."""
        return self.session.run_folder(self.keys[-1])

    @property
    def checkpoints(self) -> Path:
        """Its checkpoints."""
        return self.folder / CHECKPOINTS

    def run(
        self,
        scenario: Scenario | External,
        *,
        fresh: bool = False,
        deadline: float | None = None,
        fault: str = "",
        until: int | None = None,
        resume: Path | None = None,
        start: str = "",
        reuse_graphs: bool = False,
    ) -> Run:
        """Trains a scenario, or returns the session's run of it.

        Args:
            scenario: what to train.
            fresh: train again, whether or not it was, and compile every graph.
            deadline: seconds the ranks may take.
            fault: ``NAME`` or ``NAME=AMOUNT``, planted into this run instead of the session's.
            until: update after which it is stopped on purpose; its curves end there.
            resume: folder of checkpoints, from whose newest whole one a run of its own goes on.
            start: how its ranks start, ``fork`` or ``fresh``, instead of as the session's do.
            reuse_graphs: load graphs that earlier runs compiled, as untimed tests do anyway; its steps are timed, and
                its ``compile_time`` is undefined.

        Raises:
            ScenarioError, DataError, CheckpointError: it can't be trained; found before any process is started.
            LaunchError: a rank failed or did not finish in time.
            HardwareError: there are fewer devices than ranks.
            ResultsError: the results folder can't be written.
        """
        available = self.session.devices(self.hardware)
        if scenario.ranks > available.count:
            raise HardwareError(
                f"the scenario needs {scenario.ranks} ranks, {self.hardware} offers {available.count} "
                f"({available.reason}); mark the test with @cards({scenario.ranks})"
            )
        session = self.session
        session.prepare()
        planted = Fault.parse(fault) if fault else session.fault
        if isinstance(scenario, External):
            if fault or until is not None or resume is not None:
                raise ScenarioError("fault, until and resume are for scenarios of this trainer, not for a command")
            planted = None
        elif planted and (not planted.applies(scenario) or (planted.needs_resume and resume is None)):
            if fault:
                raise ScenarioError(f"fault {fault!r} has no effect in this run; it would pass for a healthy one")
            planted = None
        placement = replace(session.placement, start=start) if start else session.placement
        variants = [start] if placement != session.placement else []
        if reuse_graphs and not self.untimed:
            variants.append("reused")
        key = self._key(scenario, planted, until, resume, fresh, variants)
        if self.untimed and not isinstance(scenario, External) and session.finished(key) is None:
            key = self._key(scenario, planted, until, resume, fresh, [*variants, "shared"])
        self.keys.append(key)
        folder = session.run_folder(key)
        seconds = deadline or session.deadline
        session.deadlines[scenario.hash] = seconds
        with session.writing(key):
            run = session.finished(key)
            if run is None:
                _raise_known_failure(folder, seconds)
                reuses = reuse_graphs or (self.untimed and not (fresh or start))
                graphs = session.graphs if reuses else None
                run = self._train(scenario, planted, folder, seconds, placement, until, resume, graphs)
        if run.oversubscribed:
            warnings.warn(run.oversubscribed, OversubscribedWarning, stacklevel=2)
        if run.straggler:
            warnings.warn(run.straggler, StragglerWarning, stacklevel=2)
        for text in run.warnings:
            warnings.warn(text, TrainingWarning, stacklevel=2)
        return untimed(run) if self.untimed and isinstance(scenario, Scenario) else run

    def audit(self, scenario: Scenario, target: str = "gpu") -> Run:
        """Compiles a scenario of MindSpore's own engine without devices; its metrics count what a step communicates.

        Args:
            scenario: what to compile; one rank of each stage is.
            target: ``gpu`` or ``ascend``.

        Raises:
            ScenarioError: it has no graph.
            LaunchError: the compiler refuses it.
            SetupError: the front end is not set up.
        """
        session = self.session
        session.prepare()
        key = f"audit-{target}-{scenario.hash}"
        self.keys.append(key)
        folder = session.run_folder(key)
        with session.writing(key):
            run = session.finished(key)
            if run is None:
                try:
                    run, _ = audit(scenario, target, Code(session.root), folder, deadline=session.deadline)
                except LaunchError as error:
                    raise LaunchError(anonymous(str(error), session.root)) from None
                self._keep(run, folder)
        return run

    def _train(
        self,
        scenario: Scenario | External,
        fault: Fault | None,
        folder: Path,
        deadline: float,
        placement: Placement,
        until: int | None,
        resume: Path | None,
        graphs: Path | None,
    ) -> Run:
        session = self.session
        try:
            code = Code(session.root)
            run = measure(
                scenario,
                self.hardware,
                code,
                folder,
                deadline,
                fault,
                session.show_progress,
                placement,
                until=until,
                resume=resume,
                shared=self.untimed and isinstance(scenario, Scenario),
                graphs=graphs,
            )
        except LaunchError as error:
            text = anonymous(f"{error}\nall logs: runs/{folder.name} in this session's results", session.root)
            timed_out = isinstance(error, RankFailure) and error.timed_out
            failure = _Failure(message=text, deadline=deadline if timed_out else None)
            write_atomically(folder / FAILURE, failure.model_dump_json())
            raise LaunchError(text) from None
        if steps_of(run.events) and isinstance(scenario, Scenario):
            layout = scenario.layout
            title = f"{scenario.model}, dp {layout.dp} × tp {layout.tp} × pp {layout.pp}"
            write_atomically(folder / TRACE, json.dumps(chrome_trace(run.events)))
            write_atomically(folder / GANTT, gantt(run.events, title))
        self._keep(run, folder)
        return run

    def _keep(self, run: Run, folder: Path) -> None:
        run.key = folder.name
        run.warnings = [anonymous(text, self.session.root) for text in run.warnings]
        write_atomically(folder / "run.json", run.model_dump_json(indent=1))

    def _key(
        self,
        scenario: Scenario | External,
        fault: Fault | None,
        until: int | None,
        resume: Path | None,
        fresh: bool,
        variants: Sequence[str],
    ) -> str:
        parts = [self.hardware, scenario.hash]
        if fault:
            parts.append(re.sub(r"[^\w.]", "-", str(fault)))
        if until is not None:
            parts.append(f"until-{until}")
        key = "-".join([*parts, *variants])
        # What is in a folder of checkpoints may change: such a run is never another's.
        if not fresh and resume is None:
            return key
        key += f"-{'resumed' if resume else 'fresh'}-{hashlib.sha256(self.test.encode()).hexdigest()[:8]}"
        used = (f"{key}-{i}" for i in itertools.count(1))
        return next(name for name in used if not self.session.run_folder(name).exists())


class _Failure(BaseModel):
    """A failed run, so that the next test that asks for it need not wait for it to fail again."""

    message: str
    deadline: float | None
    """Seconds after which it was given up; None where it failed by itself."""


def _raise_known_failure(folder: Path, deadline: float) -> None:
    try:
        failure = _Failure.model_validate_json((folder / FAILURE).read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return
    if failure.deadline is None or deadline <= failure.deadline:
        raise LaunchError(f"{failure.message}\n(the same run failed for an earlier test)")

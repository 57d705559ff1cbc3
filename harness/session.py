"""One session's runs: each scenario is trained once, whoever asks for it, and one at a time on a device."""

import hashlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError

from harness import corpus
from harness.devices import find
from harness.errors import HardwareError, LaunchError, ResultsError
from harness.faults import Fault
from harness.files import write_atomically
from harness.launch import check_supported, train
from harness.launch.ports import lock_folder
from harness.launch.supervise import Progress
from harness.results import anonymous
from harness.run import Run
from harness.scenario import Scenario

ShowProgress = Callable[[Scenario], AbstractContextManager[Progress | None]]


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

    def run_folder(self, key: str) -> Path:
        """Folder of one run: its request, logs, reports, and ``run.json``."""
        return self.folder / "runs" / key

    def finished(self, key: str) -> Run | None:
        """A run that is done; None while it is not."""
        try:
            return Run.model_validate_json((self.run_folder(key) / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None


@dataclass
class Trainer:
    """The ``trainer`` fixture."""

    session: Session
    hardware: str
    test: str
    """Node id of the test that it serves."""

    keys: list[str] = field(default_factory=list)
    """Runs that the test asked for."""

    def run(self, scenario: Scenario, *, fresh: bool = False, deadline: float | None = None) -> Run:
        """Trains a scenario, or returns the session's run of it.

        Args:
            scenario: what to train.
            fresh: train again, whether or not it was.
            deadline: seconds the ranks may take.

        Raises:
            ScenarioError, DataError: it can't be trained; found before any process is started.
            LaunchError: a rank failed or did not finish in time.
            HardwareError: there are fewer devices than ranks.
        """
        session = self.session
        check_supported(scenario, self.hardware)
        corpus.load(scenario, session.root)
        available = find(self.hardware)
        if scenario.layout.world_size > available.count:
            raise HardwareError(
                f"the scenario needs {scenario.layout.world_size} ranks, {self.hardware} offers {available.count} "
                f"({available.reason}); mark the test with @cards({scenario.layout.world_size})"
            )
        key = self._key(scenario, fresh)
        self.keys.append(key)
        session.prepare()
        folder = session.run_folder(key)
        folder.parent.mkdir(exist_ok=True)
        with FileLock(f"{folder}.lock"):
            done = session.finished(key)
            if done:
                return done
            self._raise_known_failure(folder)
            return self._train(scenario, folder, deadline or session.deadline)

    def _train(self, scenario: Scenario, folder: Path, deadline: float) -> Run:
        session = self.session
        with FileLock(lock_folder() / f"device-{self.hardware}.lock"), session.show_progress(scenario) as progress:
            try:
                run = train(scenario, self.hardware, session.root, folder, deadline, session.fault, progress)
            except LaunchError as error:
                text = anonymous(f"{error}\nall logs: runs/{folder.name} in this session's results", session.root)
                write_atomically(folder / "failure.txt", text)
                raise LaunchError(text) from None
        write_atomically(folder / "run.json", run.model_dump_json(indent=1))
        return run

    def _raise_known_failure(self, folder: Path) -> None:
        failure = folder / "failure.txt"
        if failure.exists():
            raise LaunchError(f"{failure.read_text(encoding='utf-8')}\n(the same run failed for an earlier test)")

    def _key(self, scenario: Scenario, fresh: bool) -> str:
        parts = [self.hardware, scenario.hash]
        if self.session.fault:
            parts.append(re.sub(r"[^\w.]", "-", str(self.session.fault)))
        if fresh:
            test = hashlib.sha256(self.test.encode()).hexdigest()[:8]
            parts.append(f"fresh-{test}-{len(self.keys)}")
        return "-".join(parts)

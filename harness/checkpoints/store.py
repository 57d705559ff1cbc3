"""The folder of a training's checkpoints: written to the side, named when whole, removed by another name first."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness.checkpoints.manifest import File, Manifest, RankPart, read, read_manifest
from harness.checkpoints.policy import Checkpoints, best_of, superfluous
from harness.errors import CheckpointError
from harness.files import sync

FOLDER = "checkpoints"
_NAME = re.compile(r"step-(\d{8,})")
_PART, _GONE = ".part", ".gone"
WAIT_SECONDS = 60.0
"""How long the first rank waits for what the others put into a checkpoint."""

POLL_SECONDS = 0.01


def name(step: int) -> str:
    """Of a checkpoint's folder."""
    return f"step-{step:08d}"


class RanksMissing(CheckpointError):
    """Not all ranks put in their parts."""


class Store:
    """Complete checkpoints, by step. What was begun and not completed is never looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, step: int) -> Path:
        """The folder of a complete checkpoint."""
        return self.folder / name(step)

    def steps(self) -> list[int]:
        """Of all that bear the name of a complete one, in order. Their number says which is newest, no clock."""
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(int(match[1]) for each in names if (match := _NAME.fullmatch(each)))

    def read(self, step: int) -> Manifest:
        """The manifest of a whole checkpoint.

        Raises:
            CheckpointError: it is not whole, or another's.
        """
        manifest = read(self.path(step))
        if manifest.step != step:
            raise CheckpointError(f"{name(step)}: its manifest is of step {manifest.step}")
        return manifest

    def newest(self) -> tuple[Manifest | None, list[str]]:
        """The newest checkpoint that is whole and finite, and what is wrong with those that are newer."""
        problems: list[str] = []
        for step in reversed(self.steps()):
            try:
                manifest = self.read(step)
            except CheckpointError as error:
                problems.append(str(error))
                continue
            if manifest.is_finite:
                return manifest, problems
            problems.append(f"{name(step)}: not all of its arrays are finite; it is evidence, not to be resumed")
        return None, problems

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Writes alone, until the context ends or the process does, and begins by removing what earlier ones left.

        Raises:
            CheckpointError: another process writes here, or nobody can.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / "lock")
            lock.acquire(timeout=0)
        except Timeout:
            raise CheckpointError(
                f"{self.folder.name}: another training saves into this folder; wait for it, or name another"
            ) from None
        except OSError as error:
            raise CheckpointError(f"{self.folder.name} can't be written: {error.strerror}; name another") from None
        try:
            self._sweep()
            yield
        finally:
            lock.release()

    def _sweep(self) -> None:
        try:
            for path in self.folder.iterdir():
                if path.name.endswith((_PART, _GONE)) and _NAME.match(path.name):
                    shutil.rmtree(path)
        except OSError as error:
            raise CheckpointError(
                f"{self.folder.name}: what an earlier training left can't be removed: {error.strerror}"
            ) from None

    def begin(self, step: int) -> Path:
        """The folder that a rank writes its part of a checkpoint into."""
        part = self.folder / (name(step) + _PART)
        part.mkdir(exist_ok=True)
        return part

    def add(self, folder: Path, rank: int, save: Callable[[Path], bool], suffix: str, state: str) -> RankPart:
        """Writes a rank's part; it counts once ``announce`` was called.

        Args:
            folder: that ``begin`` gave.
            rank: whose.
            save: writes the arrays into a file, and says whether all are finite.
            suffix: of that file.
            state: everything else.
        """
        arrays, rest = folder / f"rank-{rank}.{suffix}", folder / f"rank-{rank}.json"
        finite = save(arrays)
        rest.write_text(state, encoding="utf-8")
        return RankPart(rank=rank, arrays=File.of(arrays), state=File.of(rest), finite=finite)

    def announce(self, folder: Path, part: RankPart) -> None:
        """Tells the first rank that a rank's part is on the disk."""
        # Seen by processes that run now; what a crash leaves of it is never looked at, so it need not reach the disk.
        beside = folder / f".{_announcement(part.rank)}"
        beside.write_text(part.model_dump_json(), encoding="utf-8")
        beside.rename(folder / _announcement(part.rank))

    def announced(self, folder: Path, ranks: int, seconds: float = WAIT_SECONDS) -> list[RankPart]:
        """The parts of all ranks, once they are there.

        Raises:
            RanksMissing: some did not come in time.
        """
        end = time.monotonic() + seconds
        paths = [folder / _announcement(rank) for rank in range(ranks)]
        while missing := [path for path in paths if not path.exists()]:
            if time.monotonic() > end:
                raise RanksMissing(f"{folder.name}: {len(missing)} of {ranks} ranks did not save in {seconds:g} s")
            time.sleep(POLL_SECONDS)
        try:
            found = [RankPart.model_validate_json(path.read_text(encoding="utf-8")) for path in paths]
        except ValidationError as error:
            raise CheckpointError(f"{folder.name}: a rank's part is damaged: {error}") from None
        for path in paths:
            path.unlink()
        return found

    def complete(self, folder: Path, manifest: Manifest) -> None:
        """Gives a checkpoint its manifest, and then its name."""
        manifest.write(folder)
        sync(folder)
        place = self.path(manifest.step)
        if place.exists():
            # A training that went on from an older one comes here again.
            self._remove(place)
        os.rename(folder, place)
        sync(self.folder)

    def prune(self, policy: Checkpoints, written: Manifest | None = None) -> None:
        """Removes what the policy does not keep; never the newest that can be gone on from.

        Args:
            policy: what is kept.
            written: the newest, where it was just written and need not be read again.
        """
        manifests, damaged = {}, []
        for step in self.steps():
            try:
                manifests[step] = read_manifest(self.path(step))
            except CheckpointError:
                damaged.append(step)
        alarmed = [step for step, manifest in manifests.items() if manifest.reason == "alarm"]
        evaluations = {step: found.evaluation for step, found in manifests.items() if found.evaluation}
        old = superfluous(manifests, policy.kept, alarmed, best_of(evaluations, policy.best))
        # What is damaged counts as none of those that are kept, and goes once there is a newer one.
        old += [step for step in damaged if step < max(manifests, default=0)]
        if not old:
            return
        usable = written if written and written.is_finite else self.newest()[0]
        if usable is None:
            return
        for step in old:
            if step != usable.step:
                self._remove(self.path(step))

    def _remove(self, place: Path) -> None:
        gone = place.with_name(place.name + _GONE)
        if gone.exists():
            self.erase(gone)
        os.rename(place, gone)
        self.erase(gone)

    def erase(self, folder: Path) -> None:
        """Removes a folder that no longer bears a checkpoint's name."""
        shutil.rmtree(folder)


def copy(source: Path, target: Path, step: int) -> None:
    """Copies a checkpoint, and of the others what can be read, so that who goes on leaves them as they were.

    Args:
        source: folder of checkpoints.
        target: folder to make.
        step: of the one that is needed.

    Raises:
        CheckpointError: it can't be read, or not written.
    """
    try:
        target.mkdir(parents=True)
        shutil.copytree(source / name(step), target / name(step))
    except (OSError, shutil.Error) as error:
        first = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise CheckpointError(f"{source.name}/{name(step)} can't be copied: {first}; free the disk") from None
    for other in Store(source).steps():
        if other != step:
            try:
                shutil.copytree(source / name(other), target / (name(other) + _PART))
                os.rename(target / (name(other) + _PART), target / name(other))
            except (OSError, shutil.Error):
                shutil.rmtree(target / (name(other) + _PART), ignore_errors=True)


def _announcement(rank: int) -> str:
    return f"rank-{rank}.saved"

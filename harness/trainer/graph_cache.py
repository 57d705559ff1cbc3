"""Reuse of compiled graphs between the runs of a session.

MindSpore's compile cache identifies a graph by its number in the order of compilation and checks nothing else. Here
each graph is stored under a key of everything that it depends on, and copied to the place where MindSpore looks next.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import mindspore as ms
from mindspore import Tensor, nn

from harness.launch.request import OF_A_RUN
from harness.scenario import Scenario
from harness.trainer.graph_key import UnknownValueError, graph_key, source_digest

SUFFIX = ".mindir"
"""Extension of a compiled graph's file."""

PREFIXES = ("MS_", "OMP_", "GLOG_")
"""Beginnings of the environment variables that MindSpore reads."""

SKIP_SOURCE_CHECK = "MS_DEV_FORCE_USE_COMPILE_CACHE"
"""Without it MindSpore drops its whole cache when one source file changed; the keys contain the sources instead."""

_cache: "GraphCache | None" = None


class Graph(nn.Cell):
    """A Cell that is called from Python, and therefore compiled as a graph of its own."""

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile as ``nn.Cell`` does, through this process's graph cache if there is one."""
        with _cache.compiling(self, args) if _cache and not kwargs else nullcontext():
            super().compile(*args, **kwargs)


class GraphCache:
    """The session's compiled graphs, as one rank uses them."""

    def __init__(self, shared: Path, private: Path, rank: int, common: str) -> None:
        """Turn on MindSpore's compile cache. Call it before anything is compiled.

        Args:
            shared: folder of the session's graphs; need not exist.
            private: folder of this run's graphs while it runs.
            rank: rank of this process.
            common: key of what all graphs of this process depend on.
        """
        self.shared, self.common = shared, common
        self.private = private / f"rank_{rank}" / "graph_cache"
        # A graph that is already there would be loaded in place of the first that is compiled.
        self.private.mkdir(parents=True)
        self.prefix = f"{os.environ.get('MS_ROLE', '')}compile_cache_"
        self.reused = 0
        """Number of graphs that were loaded instead of compiled."""

        self.is_in_step = True
        """Whether the number of MindSpore's next graph is known."""

        self._seen: set[tuple[Any, ...]] = set()
        self._compiled: dict[Path, str] = {}
        ms.set_context(enable_compile_cache=True, compile_cache_path=str(private))
        os.environ[SKIP_SOURCE_CHECK] = "1"

    @contextmanager
    def compiling(self, cell: nn.Cell, args: tuple[Any, ...]) -> Iterator[None]:
        """Copy a stored graph to where MindSpore looks for it, and check whether MindSpore took it."""
        forms = [(arg.shape, arg.dtype) if isinstance(arg, Tensor) else None for arg in args]
        call = (id(cell), cell.phase, cell.training, *forms)
        if not self.is_in_step or call in self._seen:
            yield
            return
        self._seen.add(call)
        before, compiled = self._files(), len(cell.compile_cache)
        file = self.private / f"{self.prefix}{max(map(_number, before), default=-1) + 1}{SUFFIX}"
        key = None if None in forms else self._key(cell, forms)
        copied = self._copy(key, file) if key else None
        yield
        if len(cell.compile_cache) != compiled + 1 or self._files() != before | {file}:
            # It compiled nothing, or stored it elsewhere: a graph copied now could be taken for another one.
            self.is_in_step = False
            file.unlink(missing_ok=True)
        elif copied and _stamp(file) == copied:
            self.reused += 1
        elif key:
            self._compiled[file] = key

    def publish(self) -> None:
        """Move the graphs that this process compiled to the session's folder, as far as the disk has room."""
        with suppress(OSError):
            self.shared.mkdir(parents=True, exist_ok=True)
            for file, key in self._compiled.items():
                file.replace(self.shared / f"{key}{SUFFIX}")

    def _key(self, cell: nn.Cell, forms: list[Any]) -> str | None:
        try:
            return graph_key(self.common, cell, forms)
        except UnknownValueError:
            return None

    def _copy(self, key: str, file: Path) -> tuple[int, int] | None:
        try:
            shutil.copyfile(self.shared / f"{key}{SUFFIX}", file)
        except OSError:
            file.unlink(missing_ok=True)
            return None
        return _stamp(file)

    def _files(self) -> set[Path]:
        return set(self.private.glob(f"*{SUFFIX}"))


def reuse_graphs(shared: Path, private: Path, rank: int, scenario: Scenario) -> GraphCache:
    """Give this process a graph cache for a scenario; the other arguments as in ``GraphCache``."""
    global _cache
    environment = sorted((n, v) for n, v in os.environ.items() if n.startswith(PREFIXES) and n not in OF_A_RUN)
    settings = (scenario.execution_order, scenario.seed, scenario.layout)
    common = graph_key(source_digest(), ms.__version__, sys.version, environment, settings, rank)
    _cache = GraphCache(shared, private, rank, common)
    return _cache


def _number(file: Path) -> int:
    return int(file.stem.rpartition("_")[2])


def _stamp(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_ino, found.st_mtime_ns

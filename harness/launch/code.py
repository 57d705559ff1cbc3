"""Whose code the ranks run."""

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Code:
    """A project's folder and the interpreter that runs it."""

    root: Path
    """Folder of the user's modules and relative text files."""

    python: Path = Path(sys.executable)
    instead_of: Path | None = None
    """The project's working tree, where ``root`` is a checkout of it: packages of the checkout then come before
    installed ones, and none of the working tree's may be run."""

    @property
    def import_paths(self) -> list[str]:
        """Folders that packages are looked for in first: the checkout, and in it what this process imports from."""
        if self.instead_of is None:
            return []
        root, tree = self.root.resolve(), self.instead_of.resolve()
        found = [str(root)]
        for entry in (*sys.path, str(tree / "src")):
            path = Path(entry).resolve()
            ours = tree in path.parents and Path(sys.prefix).resolve() not in (path, *path.parents)
            if ours and (root / path.relative_to(tree)).is_dir():
                found.append(str(root / path.relative_to(tree)))
        return list(dict.fromkeys(found))

    def may_run(self, source: Path) -> bool:
        """Whether a source file is not the working tree's where a checkout's is meant."""
        if self.instead_of is None or self.root.resolve() in source.parents:
            return True
        return self.instead_of.resolve() not in source.parents or Path(sys.prefix).resolve() in source.parents

"""What version control knows of a session."""

import subprocess
from pathlib import Path


def uncommitted(root: Path, *expected: Path) -> list[str]:
    """Files of a project that are not as in its last commit; none outside a repository.

    Args:
        root: the project.
        expected: folders, absolute or relative to the root, whose changes do not count.
    """
    outside = [f":(exclude){folder}" for folder in expected if root.resolve() in (root / folder).resolve().parents]
    return git("-C", str(root), "status", "--porcelain", "--untracked-files=all", "--", ".", *outside).splitlines()


def git(*arguments: str) -> str:
    """Output of a git command; empty where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

"""What version control knows of a session."""

import subprocess


def git(*arguments: str) -> str:
    """Output of a git command; empty where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

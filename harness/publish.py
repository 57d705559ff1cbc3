"""Hands a session's results on: its values into the history, its page beside them."""

from pathlib import Path

from harness.errors import HarnessError
from harness.history.session import keep
from harness.report.html import FILE
from harness.report.html.session import write_page
from harness.results import Results


def store(url: str | None, folder: Path, results: Results, name: str = "") -> list[str]:
    """Keeps a session's values; a history that can't be written costs no session.

    Args:
        url: of the history; None for none.
        folder: of the session.
        results: of the session.
        name: as in ``harness.history.session.keep``.

    Returns:
        Why nothing was kept; empty where it was.
    """
    try:
        if url:
            keep(url, folder, results, name)
    except HarnessError as error:
        return [str(error)]
    return []


def show(url: str | None, folder: Path, results: Results, baselines: Path, root: Path) -> list[str]:
    """Leaves a session's page in its folder; a page that fails costs no session, whatever it fails of.

    Args:
        url: of the history; None for none.
        folder: of the session.
        results: of the session.
        baselines: folder of the approved values.
        root: project.

    Returns:
        What is missing on it, or why there is none.
    """
    try:
        problem = write_page(folder / FILE, results, folder, url, baselines, root)
    except Exception as error:
        told = error if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
        problem = f"{FILE} was not written: {told}"
    return [problem] if problem else []

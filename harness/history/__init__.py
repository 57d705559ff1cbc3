"""What sessions measured over time: a database, and what it says of trends."""

import os
from pathlib import Path

FILE = "history.sqlite"
"""Name of the SQLite file beside the results."""

VARIABLE = "HARNESS_HISTORY"
"""Environment variable with the database's URL, which may hold a password and so belongs into no file."""

OFF = "off"


def address(option: str | None, results: Path) -> str | None:
    """The URL of the history; None where it is off.

    Args:
        option: what the command line says, stronger than the environment.
        results: folder of results, where the SQLite file stands by default.

    Raises:
        HistoryError: what was given is no URL, or its driver is not installed.
    """
    given = option or os.environ.get(VARIABLE)
    if given == OFF:
        return None
    if given:
        from harness.history.database import History  # a fifth of a second that most sessions need not spend here

        History(given)
    return given or str(results / FILE)

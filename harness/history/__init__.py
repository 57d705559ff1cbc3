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
    """
    url = option or os.environ.get(VARIABLE) or str(results / FILE)
    return None if url == OFF else url

"""Where the locks are that all sessions of one user on this machine share."""

import os
import tempfile
from pathlib import Path

from harness.errors import LaunchError


def lock_folder() -> Path:
    """Folder of the locks.

    Raises:
        LaunchError: it can't be made.
    """
    folder = Path(tempfile.gettempdir()) / f"mindspore-harness-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"the lock folder {folder} can't be made: {error.strerror}; set TMPDIR") from None
    return folder

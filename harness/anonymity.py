"""Keeps this machine's paths, host and user out of what is stored or shown elsewhere."""

import getpass
import re
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


def anonymous(text: str, root: Path) -> str:
    """A text without this machine's names.

    Args:
        text: a message or log; lone surrogates in it become question marks.
        root: the project's folder, which becomes ``.``.
    """
    text = text.encode("utf-8", "replace").decode()
    folders = [(str(root), "."), (str(root.resolve()), "."), (sys.prefix, "<python>"), (sys.base_prefix, "<python>")]
    folders += [(tempfile.gettempdir(), "<tmp>"), (str(Path.home()), "~")]
    for folder, placeholder in folders:
        if len(folder) > 1:
            text = re.sub(rf"(?<![\w.~-]){re.escape(folder)}(?![\w-])", placeholder, text)
    with suppress(OSError):
        host = socket.gethostname()
        for name in (host, host.partition(".")[0]):
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "<host>", text)
    with suppress(OSError, KeyError):
        text = re.sub(rf"(?<=[/-]){re.escape(getpass.getuser())}(?=[/-]|$)", "<user>", text)
    return text

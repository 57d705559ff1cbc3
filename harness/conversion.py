"""Converts a scenario's text to MindRecord, in a process of its own, beside its folder until it is whole."""

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from harness import corpus, stored
from harness.errors import DataError, ResultsError
from harness.files import sync, write_atomically
from harness.launch import child
from harness.launch.child import REQUEST
from harness.launch.code import Code
from harness.references import makes_data
from harness.scenario import Scenario

REPORT = "report.json"
ROWS = "rows"
"""Folder, in that of a conversion, of what comes of it."""

DEADLINE = 3600.0
"""Seconds that a conversion may take."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


class Request(BaseModel):
    """One conversion, as its process reads it."""

    model_config = ConfigDict(extra="forbid")

    scenario: dict[str, Any]
    root: str
    """Folder that text files are relative to."""

    shard_size: int


class Report(BaseModel):
    """What came of it."""

    model_config = ConfigDict(extra="forbid")

    rows: int
    """Of the training split."""

    shards: int
    text: int
    """Bytes of text that were written."""

    seconds: float
    """That writing them took."""

    largest: int
    """Bytes of the largest shard."""

    warnings: list[str]


def parse_size(text: str) -> int:
    """Bytes that a size like ``2GB``, ``500 MiB`` or ``1000000`` means.

    Raises:
        DataError: it is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise DataError(f"size {text!r} can't be read; write it like 2GB or 500MiB")
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])


def convert(scenario: Scenario, code: Code, folder: Path, shard_size: int) -> Report:
    """Converts the data of a scenario.

    Args:
        scenario: gives data, sequence, and what becomes of bad records.
        code: whose code, and what text files are relative to.
        folder: made by this; there must be none.
        shard_size: bytes that no MindRecord file may pass.

    Raises:
        DataError: the data is no good, or the bound too small.
        ResultsError: the folder is there already, or can't be written.
    """
    if scenario.data == "markov" or scenario.data.startswith("mindrecord:") or makes_data(scenario.data):
        raise DataError(f"data={scenario.data!r} is no text; convert 'text', 'text:FILE' or 'records:FILE'")
    if scenario.masking or scenario.shuffle_sentences:
        raise DataError("masking and shuffle_sentences are drawn for each training; convert the text as it is")
    corpus.load(scenario, code.root)
    stored.rows_per_shard(shard_size, scenario.sequence + 1)
    if folder.exists():
        raise ResultsError(f"{folder.name} exists already; remove it, or name another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent.resolve()))
    except OSError as error:
        raise ResultsError(f"{folder.name} can't be made: {error.strerror}; name a writable place") from None
    try:
        (work / ROWS).mkdir()
        request = Request(scenario=scenario.to_dict(), root=str(code.root.resolve()), shard_size=shard_size)
        write_atomically(work / REQUEST, request.model_dump_json())
        failure = child.run("harness.trainer.convert", work, code, {**os.environ, "GLOG_v": "3"}, DEADLINE)
        if failure:
            raise DataError(f"the conversion failed: {failure}")
        report = Report.model_validate_json((work / REPORT).read_text(encoding="utf-8"))
        for path in (work / ROWS).iterdir():
            sync(path)
        (work / ROWS).rename(folder)
    except OSError as error:
        raise ResultsError(f"{folder.name} can't be written: {error.strerror}; name another folder") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return report

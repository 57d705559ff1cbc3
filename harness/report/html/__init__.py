"""A session as one page that needs nothing else: no server, no other file, no network."""

import base64
import gzip
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from harness.errors import ResultsError
from harness.history.courses import Course
from harness.report.html.charts import charts
from harness.report.html.view import view
from harness.results import Results

FILE = "report.html"

_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def html(results: Results, courses: Sequence[Course] = (), logs: Mapping[str, Sequence[str]] | None = None) -> str:
    """The page.

    What comes from runs is text on it, never markup. Only scripts with the page's own random number run, and nothing
    may be fetched, whatever a run has written.

    Args:
        results: of the session.
        courses: of the values of its tests, over earlier sessions too.
        logs: last lines of what ranks wrote, by the run's key.

    Raises:
        ResultsError: a part of the installed package is missing.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_clean
    )
    return environment.from_string(_asset("page.html.j2")).render(
        page=view(results, logs or {}),
        style=_asset("page.css"),
        script=_asset("page.js"),
        plotly=_packed(_plotly()),
        data=_packed(json.dumps(_cleaned(charts(results, courses)), separators=(",", ":"), allow_nan=False)),
        nonce=secrets.token_urlsafe(16),
    )


def _clean(value: object) -> object:
    """A text without what no page may hold, or what would show it in another order than it is written in."""
    return _UNFIT.sub("\ufffd", value) if type(value) is str else value


def _cleaned(value: Any) -> Any:
    """The same with all its texts and names clean."""
    if isinstance(value, dict):
        return {_clean(name): _cleaned(each) for name, each in value.items()}
    if isinstance(value, list) and value and not isinstance(value[0], float):
        return [_cleaned(each) for each in value]
    return _clean(value)


def _asset(name: str) -> str:
    try:
        return (resources.files(__name__) / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ResultsError(
            f"the report's {name} can't be read: {error.strerror}; install mindspore-harness again"
        ) from None


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs

        return str(get_plotlyjs())
    except (ImportError, OSError) as error:
        raise ResultsError(f"the report's charts can't be read: {error}; install plotly again") from None


def _packed(text: str) -> str:
    """Compressed, in characters that mean nothing to HTML."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()

"""``harness compare``: reads the curves of two trainings."""

from pathlib import Path

from pydantic import ValidationError

from harness.errors import ResultsError
from harness.readers.log import Reading, read
from harness.run import Run

RUN = "run.json"


def readings(place: Path) -> Reading:
    """The curves of a run's folder, its ``run.json``, or a log.

    Raises:
        ResultsError: it is none of these.
    """
    path = place / RUN if place.is_dir() else place
    if path.name != RUN:
        return read(path)
    try:
        run = Run.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"{place.name}: {RUN}: {error.strerror}; name a run's folder, or a log") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise ResultsError(f"{place.name}: {RUN} can't be read: {str(error).splitlines()[0]}") from None
    steps = len(run.curves.get("loss", ()))
    # Curves of evaluations have values of their own steps, which they do not name.
    curves = {name: dict(enumerate(values, start=1)) for name, values in run.curves.items() if len(values) == steps}
    return Reading(curves=curves)

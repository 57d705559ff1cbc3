"""Finds out what a training left in a place, and reads it: a run of ours, a log, or TensorBoard's event files."""

from pathlib import Path

from pydantic import ValidationError

from harness.errors import ResultsError
from harness.readers import log
from harness.readers.log import Reading
from harness.run import Run

RUN = "run.json"
EVENTS = "*tfevents*"


def read(place: Path) -> Reading:
    """The curves of a run's folder or its ``run.json``, of a log, or of TensorBoard's event files or their folder.

    Raises:
        ResultsError: it is none of these.
    """
    if place.match(EVENTS) or (place.is_dir() and any(place.glob(EVENTS))):
        from harness.readers import tensorboard

        return tensorboard.read(place)
    path = place / RUN if place.is_dir() else place
    return _of_run(path, place) if path.name == RUN else log.read(path)


def _of_run(path: Path, place: Path) -> Reading:
    try:
        run = Run.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"{place.name}: {RUN}: {error.strerror}; name a run's folder, or a log") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise ResultsError(f"{place.name}: {RUN} can't be read: {str(error).splitlines()[0]}") from None
    length = len(run.curves.get("loss", ()))
    # Curves of evaluations have values of their own steps, which they do not name.
    curves = {
        name: dict(zip(run.steps.get(name) or range(1, length + 1), values, strict=True))
        for name, values in run.curves.items()
        if name in run.steps or len(values) == length
    }
    if run.step_seconds:
        steps = next(iter(run.steps.values()), [])
        same = len(steps) == len(run.step_seconds)
        curves["step_time"] = dict(
            zip(steps if same else range(1, len(run.step_seconds) + 1), run.step_seconds, strict=True)
        )
    return Reading(curves=curves)

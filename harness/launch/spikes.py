"""Explains, when a run is over, the spikes whose evidence its ranks left."""

from pathlib import Path

from harness import triage
from harness.files import write_atomically
from harness.report.triage import markdown, plot

REPORT = "report.md"
PLOT = "plot.svg"


def explain(folder: Path) -> list[str]:
    """Writes a report beside the evidence of each spike, and returns what each names, in a line."""
    lines = []
    for step, evidence in triage.read(folder).items():
        found, place = triage.conclude(evidence), triage.place(folder, step)
        write_atomically(place / REPORT, markdown(found, evidence))
        write_atomically(place / PLOT, plot(evidence[0]))
        where = f"{triage.FOLDER}/{place.name}/{REPORT}"
        lines.append(f"step {step}: triage names {found.fault or 'nothing'}: {found.reason} ({where})")
    return lines

"""A spike, explained from outside in: as text, and as a picture of the steps that led to it."""

import math
from collections.abc import Sequence
from html import escape

from harness.report.markdown import plain
from harness.report.terminal import number
from harness.triage import SHOWN, Conclusion, Evidence

WIDTH, HEIGHT, LEFT, GAP = 800, 180, 70, 40


def markdown(found: Conclusion, evidence: Sequence[Evidence]) -> str:
    """The report of one spike.

    Args:
        found: what is named.
        evidence: of all ranks.
    """
    first = evidence[0]
    named = f"**{found.fault}**" if found.fault else "nothing"
    lines = [
        f"# Step {found.step}",
        "",
        f"{plain(first.spike)}. Its update was {'made all the same' if first.made else 'not made'}.",
        "",
        f"This names {named}: {plain(found.reason)}.",
        "",
        "![the last steps](plot.svg)",
        "",
        "## Data",
        "",
    ]
    rows = [(each.rank, row) for each in evidence for row in each.rows]
    checked = sum(each.checked for each in evidence)
    lines.append(f"{len(rows)} of {checked} rows are not as they should be, {sum(e.before for e in evidence)} of the")
    lines[-1] += " batch before."
    if rows:
        lines += ["", "| rank | row | position | what | |", "|---|---|---|---|---|"]
        lines += [
            f"| {rank} | {r.row} | {r.position} | {r.what} | {plain(r.detail)} |" for rank, r in rows[: 2 * SHOWN]
        ]
    clipped = "off" if first.clip_norm is None else f"at {first.clip_norm:g}"
    lines += [
        "",
        "## Gradients",
        "",
        f"Clipping {clipped}; learning rate {first.learning_rate:.6g}, by its schedule {first.scheduled:.6g}.",
        "",
        "| rank | parameter | norm | share | the step before |",
        "|---|---|---|---|---|",
    ]
    lines += [row for each in evidence for row in _layers(each)]
    lines += ["", "## Parameters", ""]
    poisoned = [(each.rank, name) for each in evidence for name in each.not_finite]
    if poisoned:
        lines += [f"- rank {rank}: {plain(name)} holds something that is no number" for rank, name in poisoned[:SHOWN]]
        lines += [f"- and {len(poisoned) - SHOWN} more"] * (len(poisoned) > SHOWN)
    else:
        lines.append("All are numbers.")
    return "\n".join(lines) + "\n"


def _layers(evidence: Evidence) -> list[str]:
    """Rows of the largest norms, those that are no numbers first."""
    squares = {name: norm * norm for name, norm in evidence.norms.items()}
    total = math.fsum(square for square in squares.values() if math.isfinite(square)) or 1.0
    order = sorted(evidence.norms, key=lambda name: (math.isfinite(squares[name]), -squares[name]))
    rows = []
    for name in order[:SHOWN]:
        share = f"{squares[name] / total:.1%}" if math.isfinite(squares[name]) else "–"
        before = evidence.shares_before.get(name)
        told = "–" if before is None else f"{before:.1%}"
        rows.append(f"| {evidence.rank} | {plain(name)} | {number(evidence.norms[name])} | {share} | {told} |")
    return rows


def plot(evidence: Evidence) -> str:
    """SVG of loss and gradient norm over the last steps; what is no number is a mark at the top."""
    height = len(evidence.curves) * (HEIGHT + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"',
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for number_, (name, values) in enumerate(evidence.curves.items()):
        out += _curve(escape(name), values, evidence.first, number_ * (HEIGHT + GAP) + 22)
    return "\n".join([*out, "</svg>"]) + "\n"


def _curve(name: str, values: Sequence[float], first: int, top: int) -> list[str]:
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    span, step = (high - low) or 1.0, (WIDTH - LEFT - 20) / max(1, len(values) - 1)
    points, marks = [], []
    for index, value in enumerate(values):
        x = LEFT + index * step
        if math.isfinite(value):
            points.append(f"{x:.1f},{top + HEIGHT - (value - low) / span * (HEIGHT - 20):.1f}")
        else:
            marks.append(f'<text x="{x:.1f}" y="{top + 12}" fill="#c0392b" text-anchor="middle">{value}</text>')
    last = LEFT + (len(values) - 1) * step
    return [
        f'<text x="{LEFT}" y="{top - 6}">{name}, steps {first} to {first + len(values) - 1}</text>',
        f'<text x="8" y="{top + 24}">{high:.4g}</text><text x="8" y="{top + HEIGHT}">{low:.4g}</text>',
        f'<line x1="{last:.1f}" x2="{last:.1f}" y1="{top}" y2="{top + HEIGHT}" stroke="#c0392b" stroke-dasharray="4"/>',
        f'<polyline points="{" ".join(points)}" fill="none" stroke="#2f6fb3" stroke-width="2"/>',
        *marks,
    ]

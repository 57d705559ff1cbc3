"""One step of a run as a picture: a row a rank, time from left to right."""

from collections.abc import Sequence
from html import escape

from harness.timeline import Event, is_action, steps_of, within

WIDTH, ROW, LEFT, TOP = 1200, 34, 90, 46
COLORS = {
    "F": "#4c9be8",
    "B": "#e8804c",
    "W": "#b58ae0",
    "compute": "#8fb996",
    "send": "#2f4858",
    "receive": "#d9d9d9",
    "collective": "#c94f7c",
    "wait": "#efe3c2",
}
NAMES = {
    "F": "forward",
    "B": "backward",
    "W": "weights' gradients",
    "compute": "other computing",
    "send": "send",
    "receive": "receive, waiting included",
    "collective": "collective",
    "wait": "waiting for the slowest rank",
}


def gantt(ranks: Sequence[Sequence[Event]], title: str) -> str:
    """SVG of the recorded step whose length is the median.

    Args:
        ranks: events of each rank.
        title: above the picture.
    """
    steps = sorted(steps_of(ranks), key=lambda number: _length(within(ranks, number)))
    chosen = steps[len(steps) // 2]
    step = within(ranks, chosen)
    begin, length = _begin(step), _length(step) or 1e-9
    height = TOP + ROW * len(step) + 62
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"',
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)} · step {chosen}</text>',
    ]
    scale = (WIDTH - LEFT - 20) / length
    for rank, events in enumerate(step):
        y = TOP + ROW * rank
        out.append(f'<text x="10" y="{y + 18}">rank {rank}</text>')
        out += [_bar(event, LEFT + (event.start - begin) * scale, y, scale) for event in events]
    out += _axis(length, scale, TOP + ROW * len(step) + 6)
    out += _legend({_kind(event) for events in step for event in events}, height - 14)
    return "\n".join([*out, "</svg>"]) + "\n"


def _kind(event: Event) -> str:
    return event.name[0] if is_action(event) else event.kind


def _begin(step: Sequence[Sequence[Event]]) -> float:
    return min((event.start for events in step for event in events), default=0.0)


def _length(step: Sequence[Sequence[Event]]) -> float:
    return max((event.end for events in step for event in events), default=0.0) - _begin(step)


def _bar(event: Event, x: float, y: int, scale: float) -> str:
    width = max(0.6, (event.end - event.start) * scale)
    tip = f"{event.kind} {event.name}: {1e3 * (event.end - event.start):.2f} ms"
    tip += f", {event.size} bytes" if event.size else ""
    bar = (
        f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 8}" fill="{COLORS[_kind(event)]}">'
        f"<title>{escape(tip)}</title></rect>"
    )
    if is_action(event) and width > 9 * len(event.name):
        bar += (
            f'<text x="{x + width / 2:.2f}" y="{y + 18}" text-anchor="middle" fill="#fff">{escape(event.name)}</text>'
        )
    return bar


def _axis(length: float, scale: float, y: int) -> list[str]:
    found = []
    for tick in range(11):
        x = LEFT + length * scale * tick / 10
        found.append(f'<path d="M{x:.1f} {TOP - 6}V{y}" stroke="#bbb" stroke-width="0.5"/>')
        found.append(f'<text x="{x:.1f}" y="{y + 14}" text-anchor="middle">{1e3 * length * tick / 10:.1f}</text>')
    return [*found, f'<text x="10" y="{y + 14}">ms</text>']


def _legend(kinds: set[str], y: int) -> list[str]:
    found, x = [], LEFT
    for kind in (kind for kind in COLORS if kind in kinds):
        found.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{COLORS[kind]}"/>')
        found.append(f'<text x="{x + 17}" y="{y}">{escape(NAMES[kind])}</text>')
        x += 40 + 7 * len(NAMES[kind])
    return found

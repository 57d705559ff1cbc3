"""Shows courses at a terminal: a table with sparklines, and plots."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from harness.history.courses import Course
from harness.report.terminal import number, shortened

_LEVELS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 24
PLOT_HEIGHT = 14


def sparkline(values: Sequence[float]) -> str:
    """One character a value, from the lowest to the highest of them."""
    low, high = min(values), max(values)
    span = high - low
    top = len(_LEVELS) - 1
    return "".join(_LEVELS[round(top * (value - low) / span) if span else 0] for value in values)


def changes(course: Course) -> str:
    """Where the series changed its level, by how much, and at which commit."""
    parts = []
    for segment in course.trend.segments[1:]:
        first = course.points[segment.start]
        commit = f" at {first.commit[:7]}" if first.commit else ""
        parts.append(f"{100 * segment.change:+.2f} % on {first.started[:10]}{commit}")
    return ", ".join(parts)


def trend_table(courses: Sequence[Course], room: int) -> Table:
    """One row a series: runs, anchor, last value, drift of the last segment from the anchor, course, changes.

    Args:
        courses: the series.
        room: characters for a test's name.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("value", "runs", "anchor", "last", "drift", "course", "changes", "machine", "test"):
        right = heading in ("runs", "anchor", "last", "drift")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for course in courses:
        series, trend = course.series, course.trend
        drift = f"{100 * trend.drift:+.2f} %"
        table.add_row(
            escape(f"{series.label}.{series.metric}"),
            str(len(course.points)),
            number(trend.anchor),
            number(course.points[-1].value),
            f"[red]{drift}[/]" if trend.drifted else drift,
            sparkline([point.value for point in course.points[-SPARK_WIDTH:]]),
            escape(changes(course)),
            escape(series.machine),
            escape(shortened(series.test.rpartition("::")[2], room)),
        )
    return table


def plot(course: Course, width: int) -> str:
    """A plot of one series over its runs, with its anchor as a line.

    Args:
        course: the series.
        width: characters a line.
    """
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.theme("colorless")
    figure.plot_size(width, PLOT_HEIGHT)
    figure.line(course.trend.anchor)
    figure.draw(figure.signal(list(range(1, len(course.points) + 1)), [point.value for point in course.points]))
    return str(plotext.uncolorize(str(figure.build())))

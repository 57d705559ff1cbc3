"""Where two runs part, as text."""

import itertools

from rich.markup import escape
from rich.table import Table

from harness.diverge import Comparison, Difference
from harness.report.terminal import number

AROUND = 6
"""Layers that are shown before and after the one where runs part."""


def verdict(found: Comparison, tolerance: float) -> list[str]:
    """One or two lines."""
    if found.parting:
        before = [step for step in found.steps if step < found.parting.step]
        lines = [f"the runs part at {found.parting}"]
        if before:
            lines.append(f"at step {before[-1]}, the last before that was traced, they agree within {tolerance:g}")
        elif found.parting.kind == "parameter":
            lines.append("they begin with other parameters")
        return [*lines, *_alone(found)]
    lines = [f"no place of {len(found.steps)} traced steps is further apart than {tolerance:g}"]
    if found.first_bits:
        return [*lines, f"the first that is not equal in every bit is {found.first_bits}", *_alone(found)]
    return [
        *lines,
        "what both hold is equal in every bit" if found.alone else "all are equal in every bit",
        *_alone(found),
    ]


def _alone(found: Comparison) -> list[str]:
    if not found.alone:
        return []
    more = f" and {len(found.alone) - 3} more" if len(found.alone) > 3 else ""
    return [f"one of the runs alone holds {', '.join(found.alone[:3])}{more}: nothing was compared with them"]


def layer_table(found: Comparison) -> Table | None:
    """The layers around the parting, or around the first bits; None where all are equal."""
    place = found.parting or found.first_bits
    if place is None:
        return None
    keys = [(each.kind, each.name) for each in found.layers]
    middle = keys.index((place.kind, place.name))
    shown = found.layers[max(0, middle - AROUND) : middle + AROUND + 1]
    table = Table("kind", "layer", "rank", "row", "relative distance", "norm", "other norm", box=None)
    for each in shown:
        here = (each.kind, each.name) == (place.kind, place.name)
        cells = _cells(each)
        table.add_row(*(f"[red]{cell}[/]" if here else cell for cell in cells))
    return table


def _cells(each: Difference) -> list[str]:
    row = "" if each.row is None else str(each.row)
    numbers = ("", "") if each.kind == "rows" else tuple(number(norm) for norm in each.norms)
    return list(itertools.chain((each.kind, escape(each.name), str(each.rank), row, f"{each.relative:.3g}"), numbers))

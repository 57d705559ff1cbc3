"""A folder of checkpoints as a table."""

from rich.markup import escape
from rich.table import Table

from harness.checkpoints.store import Store
from harness.errors import CheckpointError


def checkpoint_table(store: Store) -> tuple[Table, bool]:
    """A row a checkpoint, and whether one of them can be gone on from."""
    table = Table("step", "reason", "samples", "perplexity", "MB", "state", box=None)
    usable = False
    for step in store.steps():
        try:
            found = store.read(step)
        except CheckpointError as error:
            table.add_row(str(step), "", "", "", "", f"[red]{escape(str(error))}[/]")
            continue
        usable = usable or found.is_finite
        size = sum(file.size for part in found.ranks for file in (part.arrays, part.state)) / 1e6
        perplexity = f"{found.evaluation.perplexity:.6g}" if found.evaluation else ""
        state = "[green]whole[/]" if found.is_finite else "[yellow]whole, not finite[/]"
        table.add_row(str(step), found.reason, str(found.samples), perplexity, f"{size:.1f}", state)
    return table, usable

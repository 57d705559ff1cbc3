"""A run's events in the trace event format that Perfetto and chrome://tracing open."""

from collections.abc import Sequence
from typing import Any

from harness.timeline import Event


def chrome_trace(ranks: Sequence[Sequence[Event]]) -> dict[str, Any]:
    """One thread a rank, one arrow a message; times in microseconds.

    Args:
        ranks: events of each rank.
    """
    found: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "training"}}]
    sends: dict[tuple[int, int, int], int] = {}
    receives: dict[tuple[int, int, int], int] = {}
    for rank, events in enumerate(ranks):
        found.append({"name": "thread_name", "ph": "M", "pid": 0, "tid": rank, "args": {"name": f"rank {rank}"}})
        for event in events:
            found.append(
                {
                    "name": event.name if event.kind == "compute" else f"{event.kind} {event.name}",
                    "cat": event.kind,
                    "ph": "X",
                    "pid": 0,
                    "tid": rank,
                    "ts": 1e6 * event.start,
                    "dur": 1e6 * (event.end - event.start),
                    "args": _details(event),
                }
            )
            if event.kind == "send":
                found.append(_arrow("s", rank, event.start, (event.step, rank, event.peer), sends))
            elif event.kind == "receive":
                found.append(_arrow("f", rank, event.end, (event.step, event.peer, rank), receives))
    return {"traceEvents": found, "displayTimeUnit": "ms"}


def _details(event: Event) -> dict[str, float]:
    details: dict[str, float] = {"step": event.step}
    if event.size:
        details["bytes"] = event.size
    if event.peer >= 0:
        details["peer"] = event.peer
    return details


def _arrow(
    phase: str, rank: int, at: float, channel: tuple[int, int, int], count: dict[tuple[int, int, int], int]
) -> dict[str, Any]:
    """One end of a message: the n-th send of a channel and step belongs to its n-th receive."""
    number = count[channel] = count.get(channel, 0) + 1
    name = "-".join(str(part) for part in (*channel, number))
    ends = {"bp": "e"} if phase == "f" else {}
    return {"name": "message", "cat": "message", "ph": phase, "id": name, "pid": 0, "tid": rank, "ts": 1e6 * at, **ends}

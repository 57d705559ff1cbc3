"""What a rank executes: a schedule's actions with the sends and receives between them."""

from dataclasses import dataclass
from typing import Literal

from harness.schedule.orders import Action, Schedule


@dataclass(frozen=True)
class Instruction:
    """One thing that a rank does."""

    operation: Literal["compute", "send", "receive"]
    action: Action
    """What is computed; of a message, the action whose output it carries."""

    peer: int = -1
    """The other rank of a message."""

    def __str__(self) -> str:
        return f"{self.operation} {self.action}" + (f" ({self.peer})" if self.operation != "compute" else "")


def program(schedule: Schedule, blocking: bool = False) -> list[list[Instruction]]:
    """The instructions of each rank.

    Messages between two ranks carry no tags, so what one sends in an order, the other receives in the same.

    With buffered sends (``isend``), an output is sent as soon as it is there and received when it is needed, or when
    one that was sent later is. With blocking sends, which wait for the receiver, that order can deadlock: two ranks
    that both send wait for each other. Then all ranks follow one order of all events in which a message is a single
    event, so that sender and receiver always come to it together.

    Args:
        schedule: the order of actions.
        blocking: whether a send returns only once it was received.

    Raises:
        ValueError: the schedule can't be executed: ranks would wait for each other for ever.
    """
    order = execution_order(schedule)
    return _blocking(schedule, order) if blocking else _buffered(schedule)


def receivers(schedule: Schedule, rank: int, action: Action) -> list[int]:
    """The rank that needs an action's output, if it is another one."""
    part = schedule.part(rank, action.chunk)
    target = {"F": part + 1, "B": part - 1, "W": -1}[action.kind]
    if not 0 <= target < schedule.parts:
        return []
    peer = schedule.place(target)[0]
    return [peer] if peer != rank else []


def _buffered(schedule: Schedule) -> list[list[Instruction]]:
    sent = {
        (rank, peer): [a for a in order if peer in receivers(schedule, rank, a)]
        for rank, order in enumerate(schedule.orders)
        for peer in range(schedule.stages)
    }
    taken = dict.fromkeys(sent, 0)
    found: list[list[Instruction]] = []
    for rank, order in enumerate(schedule.orders):
        instructions: list[Instruction] = []
        for action in order:
            for peer, needed in schedule.needs(rank, action):
                if peer == rank:
                    continue
                channel = peer, rank
                upto = sent[channel].index(needed) + 1
                for message in sent[channel][taken[channel] : upto]:
                    instructions.append(Instruction("receive", message, peer))
                taken[channel] = max(taken[channel], upto)
            instructions.append(Instruction("compute", action))
            instructions += [Instruction("send", action, peer) for peer in receivers(schedule, rank, action)]
        found.append(instructions)
    return found


def _blocking(schedule: Schedule, order: list[tuple[int, Action]]) -> list[list[Instruction]]:
    found: list[list[Instruction]] = [[] for _ in range(schedule.stages)]
    for rank, action in order:
        found[rank].append(Instruction("compute", action))
        for peer in receivers(schedule, rank, action):
            found[rank].append(Instruction("send", action, peer))
            found[peer].append(Instruction("receive", action, rank))
    return found


def execution_order(schedule: Schedule) -> list[tuple[int, Action]]:
    """All actions of all ranks in one order that keeps the ranks' own and all dependencies, ranks in lockstep.

    Raises:
        ValueError: there is none.
    """
    done: set[tuple[int, Action]] = set()
    position = [0] * schedule.stages
    found: list[tuple[int, Action]] = []
    while len(found) < sum(len(order) for order in schedule.orders):
        ready = []
        for rank, order in enumerate(schedule.orders):
            if position[rank] < len(order):
                action = order[position[rank]]
                if all(needed in done for needed in schedule.needs(rank, action)):
                    ready.append((rank, action))
        if not ready:
            pairs = enumerate(zip(schedule.orders, position, strict=True))
            waiting = [f"rank {rank} before {order[at]}" for rank, (order, at) in pairs if at < len(order)]
            raise ValueError(f"{schedule.name}: deadlock: {', '.join(waiting)}")
        for rank, action in ready:
            position[rank] += 1
            done.add((rank, action))
        found += ready
    return found

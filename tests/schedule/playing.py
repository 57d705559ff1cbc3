"""Plays programs message by message, as ranks would, to see that none waits for ever."""

from harness.schedule.replay import Span, Timeline


def replay_program(
    schedule,
    programs,
    blocking,
    duration=lambda rank, action: 1.0,
    send=0.0,
):
    """Plays what the ranks would execute, message by message, in the order in which they were sent.

    Args:
        schedule: gives the number of ranks.
        programs: one a rank.
        blocking: whether a send waits for its receiver.
        duration: time of each action.
        send: time of a message.

    Raises:
        ValueError: ranks wait for each other for ever, or one receives what was not sent next.
    """
    now = [0.0] * schedule.stages
    position = [0] * schedule.stages
    spans = [[] for _ in range(schedule.stages)]
    channels = {}

    def step(rank):
        """Executes a rank's next instruction if it can."""
        if position[rank] == len(programs[rank]):
            return False
        instruction = programs[rank][position[rank]]
        action, peer = instruction.action, instruction.peer
        if instruction.operation == "compute":
            start, now[rank] = now[rank], now[rank] + duration(rank, action)
            spans[rank].append(Span(start, now[rank], action))
        elif instruction.operation == "send" and not blocking:
            channels.setdefault((rank, peer), []).append((action, now[rank] + send))
        elif instruction.operation == "send":
            if not _receives(programs[peer], position[peer], rank):
                return False
            _check_order(programs[peer][position[peer]].action, action)
            now[rank] = now[peer] = max(now[rank], now[peer]) + send
            position[peer] += 1
        else:
            if blocking or not channels.get((peer, rank)):
                return False
            sent, arrival = channels[peer, rank].pop(0)
            _check_order(action, sent)
            now[rank] = max(now[rank], arrival)
        position[rank] += 1
        return True

    while any(step(rank) for rank in range(schedule.stages)):
        pass
    stuck = [f"rank {r}: {programs[r][i]}" for r, i in enumerate(position) if i < len(programs[r])]
    if stuck:
        raise ValueError(f"{schedule.name}: deadlock: {', '.join(stuck)}")
    return Timeline(tuple(tuple(rank) for rank in spans))


def _receives(program, position, peer):
    """Whether a rank has come to a message from a peer."""
    following = program[position : position + 1]
    return any(instruction.operation == "receive" and instruction.peer == peer for instruction in following)


def _check_order(expected, sent):
    if expected != sent:
        raise ValueError(f"{expected} is to be received next, and {sent} was sent: messages carry no tags")

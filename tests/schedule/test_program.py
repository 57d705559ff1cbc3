from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.schedule import Action, Schedule, one_f_one_b, program, replay
from harness.schedule.program import receivers
from tests.schedule.playing import replay_program
from tests.schedule.shapes import schedules


@given(schedules, st.booleans())
def test_no_schedule_deadlocks_with_buffered_or_blocking_sends(schedule, blocking):
    """The replay refuses a message that was not the next one sent, so order is checked as well."""
    timeline = replay_program(schedule, program(schedule, blocking), blocking)
    assert tuple(tuple(span.action for span in rank) for rank in timeline.spans) == schedule.orders


@given(schedules, st.booleans())
def test_every_output_that_another_rank_needs_is_sent_and_received_once(schedule, blocking):
    programs = program(schedule, blocking)
    sent = [(rank, i.peer, i.action) for rank, p in enumerate(programs) for i in p if i.operation == "send"]
    received = [(i.peer, rank, i.action) for rank, p in enumerate(programs) for i in p if i.operation == "receive"]
    wanted = [
        (rank, peer, action)
        for rank, order in enumerate(schedule.orders)
        for action in order
        for peer in receivers(schedule, rank, action)
    ]
    assert sorted(sent) == sorted(received) == sorted(wanted)


@given(schedules, st.booleans())
def test_an_input_is_received_before_it_is_needed_and_an_output_sent_after_it_is_there(schedule, blocking):
    for rank, instructions in enumerate(program(schedule, blocking)):
        known = set()
        for instruction in instructions:
            if instruction.operation == "receive":
                known.add((instruction.peer, instruction.action))
            elif instruction.operation == "compute":
                assert all(needed in known for needed in schedule.needs(rank, instruction.action))
                known.add((rank, instruction.action))
            else:
                assert (rank, instruction.action) in known


@given(schedules, st.floats(0, 2))
def test_a_buffered_program_takes_the_time_of_its_schedule(schedule, send):
    duration = lambda rank, action: 2.0 if action.kind == "B" else 1.0  # noqa: E731
    played = replay_program(schedule, program(schedule), False, duration, send)
    assert played.makespan == pytest.approx(replay(schedule, send=send, duration=duration).makespan)


def test_the_program_of_a_small_pipeline():
    def shown(rank, blocking):
        return ", ".join(map(str, program(one_f_one_b(2, 2), blocking)[rank]))

    assert shown(0, False) == (
        "compute F0, send F0 (1), compute F1, send F1 (1), receive B0 (1), compute B0, receive B1 (1), compute B1"
    )
    assert shown(1, True) == (
        "receive F0 (0), receive F1 (0), compute F0, compute B0, send B0 (0), compute F1, compute B1, send B1 (0)"
    )


def test_the_plain_order_deadlocks_with_blocking_sends():
    """Why there are two programs: rank 0 sends F1 while rank 1 sends B0."""
    schedule = one_f_one_b(2, 3)
    with pytest.raises(ValueError, match="deadlock: rank 0: send F1"):
        replay_program(schedule, program(schedule), blocking=True)


def test_an_order_that_no_ranks_can_follow_is_refused():
    schedule = one_f_one_b(2, 2)
    backward_first = replace(schedule, orders=(schedule.orders[0], tuple(reversed(schedule.orders[1]))))
    for use in (program, replay, lambda s: program(s, blocking=True)):
        with pytest.raises(ValueError, match="deadlock: rank 0 before B0, rank 1 before B1"):
            replay_program(backward_first, use(backward_first), False)


def test_a_message_out_of_order_is_refused():
    schedule = Schedule("crossed", 2, 2, 1, one_f_one_b(2, 2).orders)
    programs = program(schedule)
    receives = [i for i, x in enumerate(programs[0]) if x.operation == "receive"]
    first, second = receives
    programs[0][first], programs[0][second] = programs[0][second], programs[0][first]
    with pytest.raises(ValueError, match="B1 is to be received next, and B0 was sent"):
        replay_program(schedule, programs, False)
    assert Action("B", 0) == programs[0][second].action

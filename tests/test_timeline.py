import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Undefined
from harness.schedule import Action, gpipe, interleaved, one_f_one_b, replay
from harness.timeline import (
    Event,
    exposure,
    idle_shares,
    is_action,
    median_idle,
    replayed,
    slowest,
    steps_of,
    under_way,
)


def recorded(timeline, step=1, kind="compute"):
    """The events that ranks would leave which did what a replay says."""
    return [[Event(step, kind, str(span.action), span.start, span.end) for span in rank] for rank in timeline.spans]


@given(st.integers(1, 4), st.integers(1, 8), st.sampled_from([gpipe, one_f_one_b]))
def test_idle_shares_of_what_a_replay_says_are_the_replays(stages, micro_batches, schedule):
    timeline = replay(schedule(stages, micro_batches))
    assert idle_shares(recorded(timeline)) == pytest.approx(timeline.idle)


def test_updates_and_waiting_are_not_work_on_a_micro_batch():
    events = [
        [Event(1, "compute", "F0", 0, 1), Event(1, "receive", "B0", 1, 3, peer=1), Event(1, "compute", "B0", 3, 4)],
        [Event(1, "compute", "F0", 1, 2), Event(1, "compute", "B0", 2, 3), Event(1, "compute", "update", 4, 9)],
    ]
    assert idle_shares(events) == [0.5, 0.5]


def test_the_median_step_counts():
    steps = [recorded(replay(gpipe(2, m)), step) for step, m in enumerate((1, 2, 8), start=1)]
    ranks = [[event for step in steps for event in step[rank]] for rank in range(2)]
    assert median_idle(ranks) == pytest.approx(list(replay(gpipe(2, 2)).idle))
    assert steps_of(ranks) == [1, 2, 3]


def test_a_run_without_a_pipeline_has_no_bubble():
    with pytest.raises(Undefined, match="without a pipeline has no bubble"):
        median_idle([[Event(1, "compute", "gradients", 0, 1)]])
    with pytest.raises(Undefined, match="no step"):
        median_idle([[], []])


def test_a_replay_takes_the_time_that_actions_take_alone():
    """In training, ranks that share a core hold each other up: here each in its own way."""
    schedule = one_f_one_b(4, 8)
    timeline = replay(schedule)
    alone = recorded(timeline, step=0, kind="alone")
    trained = [[e._replace(end=e.end + rank) for e in events] for rank, events in enumerate(recorded(timeline))]
    both = [[*trained[rank], *alone[rank]] for rank in range(4)]
    assert replayed(schedule, both).makespan == pytest.approx(33)
    assert replayed(schedule, both).bubble_ratio == pytest.approx(3 / 11)
    assert steps_of(both) == [1]


def test_nothing_recorded_is_nothing_to_replay():
    with pytest.raises(Undefined, match="no stage's work was recorded"):
        replayed(one_f_one_b(2, 2), recorded(replay(one_f_one_b(2, 2))))


def test_one_slow_action_does_not_move_a_replay():
    schedule = interleaved(2, 4, 2)
    events = recorded(replay(schedule), step=0, kind="alone")
    events[1][3] = events[1][3]._replace(end=events[1][3].end + 100)
    assert replayed(schedule, events).makespan == pytest.approx(replay(schedule).makespan)


@pytest.mark.parametrize(("name", "expected"), [("F0", True), ("B12.1", True), ("W3", True), ("update", False)])
def test_actions_are_told_by_their_names(name, expected):
    assert is_action(Event(1, "compute", name, 0, 1)) is expected
    assert not is_action(Event(1, "send", name, 0, 1))


def test_actions_name_themselves_as_events_do():
    assert all(is_action(Event(1, "compute", str(Action(kind, 3, 1)), 0, 1)) for kind in "FBW")


def test_a_message_is_under_way_from_its_sending_not_from_when_somebody_waits_for_it():
    step = [
        [Event(1, "compute", "F0", 0, 4), Event(1, "send", "F0", 4, 5, peer=1)],
        [Event(1, "receive", "F0", 0, 6, peer=0), Event(1, "compute", "F0", 6, 8)],
    ]
    assert under_way(step, 1) == [(4, 6)]
    assert under_way(step, 0) == [(4, 5)]
    found = exposure(step, 1)
    assert (found.total, found.overlapped, found.exposed) == (2, 0, 2)


def test_a_message_that_came_early_is_hidden_by_work():
    step = [
        [Event(1, "send", "F0", 0, 1, peer=1), Event(1, "send", "F1", 1, 2, peer=1)],
        [
            Event(1, "receive", "F0", 0, 2, peer=0),
            Event(1, "compute", "F0", 2, 6),
            Event(1, "receive", "F1", 6, 7, peer=0),
        ],
    ]
    found = exposure(step, 1)
    assert (found.total, found.overlapped, found.exposed) == (7, 4, 3)


def test_the_slowest_of_its_kind_is_named():
    ranks = [[Event(step, "compute", "gradients", step, step + length) for step in range(3)] for length in (1, 1, 4, 5)]
    assert slowest(ranks, [[0, 1], [2, 3]], 1.2) == (3, 1.25)
    assert slowest(ranks, [[0, 2], [1, 3]], 1.2) == (3, 5.0)
    assert slowest(ranks, [[0, 1], [2, 3]], 1.3) is None
    assert slowest(ranks, [], 1.3) is None

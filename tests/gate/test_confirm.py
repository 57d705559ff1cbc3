import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import LaunchError
from harness.gate import Policy, Status, Verdict
from harness.gate.confirm import LOOKS, MOST_ATTEMPTS, confirm, decide, ratio_interval, suspicious
from harness.metrics import METRICS
from tests.gate.builders import make_run

STEP_TIME, THROUGHPUT = METRICS["step_time"], METRICS["throughput"]
FLOOR = Policy(0.05)
SCREENED = Verdict(metric="step_time", status=Status.REGRESSED, reason="outside", value=1.2, scope="machine")

times = st.lists(st.floats(0.01, 100), min_size=1, max_size=20)


class Machine:
    """Runs of base and head that differ by noise, and head by a factor."""

    def __init__(self, head=1.0, noise=0.03, drift=0.0, seed=0, **fields):
        self.random = np.random.default_rng(seed)
        self.head, self.noise, self.drift, self.fields = head, noise, drift, fields
        self.sides = []

    def __call__(self, side):
        factor = math.exp(self.random.normal(0, self.noise) + self.drift * len(self.sides))
        self.sides.append(side)
        seconds = factor * (self.head if side == "head" else 1.0)
        return make_run(step_time=seconds, throughput=1 / seconds).model_copy(update=self.fields)


def settle(machine, metric=STEP_TIME, policy=FLOOR, verdict=SCREENED):
    (found,) = confirm([(verdict.model_copy(update={"metric": metric.name}), metric, policy)], machine, "main")
    return found


def test_base_and_head_take_turns():
    machine = Machine()
    settle(machine)
    assert "".join(side[0] for side in machine.sides).startswith("bhhbbhhb")


@pytest.mark.parametrize(("metric", "head"), [(STEP_TIME, 1.3), (THROUGHPUT, 1.3)])
def test_a_slower_head_is_confirmed_early_and_says_by_how_much(metric, head):
    machine = Machine(head)
    found = settle(machine, metric)
    assert found.status is Status.REGRESSED
    assert len(machine.sides) == 2 * LOOKS[0]
    assert found.reason.startswith("worse: head / main ")
    assert f"over {LOOKS[0]} pairs; at first REGRESSED (outside)" in found.reason
    ratio = head if metric is STEP_TIME else 1 / head
    assert found.confirmation.low < found.confirmation.ratio < found.confirmation.high
    assert found.confirmation.ratio == pytest.approx(ratio, rel=0.05)
    assert (found.confirmation.status, found.confirmation.reason) == (Status.REGRESSED, "outside")


@pytest.mark.parametrize("metric", [STEP_TIME, THROUGHPUT])
@pytest.mark.parametrize("head", [1.0, 0.7])
def test_an_unchanged_or_faster_head_is_cleared(metric, head):
    found = settle(Machine(head, noise=0.01), metric)
    assert found.status is Status.PASS
    assert found.reason.startswith("no worse")
    assert not found.fails


def test_a_machine_that_slows_down_steadily_favours_neither_side():
    assert settle(Machine(noise=0.002, drift=0.02)).status is Status.PASS


def test_a_change_below_the_floor_is_none():
    assert settle(Machine(1.03, noise=0.001)).status is Status.PASS
    assert settle(Machine(1.03, noise=0.001), policy=Policy(0.02)).status is Status.REGRESSED
    assert settle(Machine(1.3, noise=0.001), policy=Policy(0.0, absolute=0.5)).status is Status.PASS


def test_what_stays_unclear_at_the_bound_is_inconclusive():
    machine = Machine(1.025, noise=0.15)
    found = settle(machine)
    assert found.status is Status.INCONCLUSIVE
    assert len(machine.sides) == 2 * LOOKS[-1]
    assert found.reason.startswith("can't be told: head / main")
    assert found.fails


@pytest.mark.parametrize(("head", "alarms"), [(1.0, (0.0, 0.02)), (1.05, (0.95, 1.0))])
def test_power_and_false_alarms(head, alarms):
    """Between runs 3 %; the whole of screen and confirmation is in the benchmark."""
    found = [settle(Machine(head, seed=seed)).status for seed in range(120)]
    assert alarms[0] <= np.mean([status is Status.REGRESSED for status in found]) <= alarms[1]


def test_decisions_are_tried_at_the_looks_alone():
    """Looking after every pair would find, sooner or later, whatever noise offers."""
    found = [settle(Machine(1.03, noise=0.04, seed=seed)) for seed in range(12)]
    assert {verdict.confirmation.pairs for verdict in found} <= set(LOOKS)


def test_several_metrics_share_the_pairs():
    machine = Machine(1.3)
    questions = [(SCREENED, STEP_TIME, FLOOR), (SCREENED, THROUGHPUT, FLOOR)]
    assert [v.status for v in confirm(questions, machine, "main")] == [Status.REGRESSED] * 2
    assert len(machine.sides) == 2 * LOOKS[0]


def test_disturbed_pairs_do_not_count():
    machine = Machine(1.3, foreign_load=0.5)
    found = settle(machine)
    assert found.status is Status.INCONCLUSIVE
    assert found.reason.startswith(f"can't be told: no undisturbed pair over 0 pairs, {MOST_ATTEMPTS} more disturbed")
    assert len(machine.sides) == 2 * MOST_ATTEMPTS
    calls = itertools.count()

    def sometimes(side):
        return Machine(1.3 if side == "head" else 1.0, foreign_load=0.5 if next(calls) % 4 == 0 else 0.0)(side)

    assert f"over {LOOKS[0]} pairs, {LOOKS[0]} more disturbed" in settle(sometimes).reason


def test_what_is_left_of_the_pairs_at_the_bound_still_decides():
    """Of 60 attempts, 45 are disturbed: 15 pairs lie between two looks."""
    calls = itertools.count()

    def mostly(side):
        return Machine(2.0 if side == "head" else 1.0, foreign_load=0.0 if next(calls) % 8 < 2 else 0.5)(side)

    unclear = Machine(1.025, noise=0.15)
    assert "worse" in settle(mostly).reason
    assert len(unclear.sides) == 0
    settle(unclear)
    assert len(unclear.sides) == 2 * LOOKS[-1]


@pytest.mark.parametrize("missing", ["head", "base"])
def test_a_run_that_lacks_the_metric_disturbs_its_pair_and_no_other(missing):
    calls = itertools.count()
    machine = Machine(1.5)

    def once(side):
        run = machine(side)
        return make_run(peak_memory=1.0) if side == missing and next(calls) == 0 else run

    found = settle(once)
    assert found.status is Status.REGRESSED
    assert "1 more disturbed" in found.reason


def crash(at, side):
    machine = Machine(1.3)

    def measure(which):
        if which == side and len(machine.sides) >= at:
            raise LaunchError("a rank failed: exit 1")
        return machine(which)

    return measure


def test_a_base_that_crashes_leaves_head_judged_and_says_so():
    found = settle(crash(0, "base"))
    assert found.status is Status.REGRESSED
    assert found.reason == "outside; not confirmed, because base failed: a rank failed: exit 1"
    assert (found.confirmation.pairs, found.confirmation.ratio) == (0, None)
    assert "base failed" in found.confirmation.problem
    passed = SCREENED.model_copy(update={"status": Status.PASS, "reason": ""})
    assert settle(crash(0, "base"), verdict=passed).status is Status.PASS


def test_a_head_that_crashes_when_run_again_is_invalid():
    found = settle(crash(4, "head"))
    assert found.status is Status.INVALID
    assert "head failed: a rank failed" in found.reason


@given(times)
def test_equal_sides_have_the_ratio_one(base):
    interval = ratio_interval(base, base)
    assert (interval.low, interval.ratio, interval.high) == (1.0, 1.0, 1.0)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=15), st.floats(0.1, 10))
def test_interval_holds_the_median_and_follows_the_unit(pairs, factor):
    base, head = map(list, zip(*pairs, strict=True))
    interval = ratio_interval(base, head)
    assert interval.low <= interval.ratio * (1 + 1e-12)
    assert interval.ratio <= interval.high * (1 + 1e-12)
    scaled = ratio_interval(base, [factor * value for value in head])
    assert scaled.ratio == pytest.approx(factor * interval.ratio)


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=2, max_size=15))
def test_worse_in_one_direction_is_better_in_the_other(pairs):
    base, head = map(list, zip(*pairs, strict=True))
    answers = {decide(STEP_TIME, FLOOR, base, head), decide(THROUGHPUT, FLOOR, base, head)}
    assert answers != {Status.REGRESSED}


@pytest.mark.parametrize(("base", "head"), [([], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([1.0], [-1.0])])
def test_pairs_of_positive_values_are_needed(base, head):
    with pytest.raises(ValueError, match="pairs of positive values"):
        ratio_interval(base, head)


@pytest.mark.parametrize(
    ("status", "lane", "value", "samples", "expected"),
    [
        (Status.REGRESSED, "gating", 1.5, [1.0] * 10, True),
        (Status.REGRESSED, "advisory", 1.5, [1.0] * 10, False),
        (Status.INCONCLUSIVE, "gating", 1.0, [1.0] * 10, True),
        (Status.INVALID, "gating", 1.0, [1.0] * 10, True),
        (Status.ENVIRONMENT_CHANGED, "gating", 1.5, [1.0] * 10, True),
        (Status.NO_BASELINE, "gating", 1.0, [], True),
        (Status.XFAIL, "gating", 1.5, [1.0] * 10, False),
        (Status.IMPROVED, "gating", 0.5, [1.0] * 10, False),
        # One approved run says too little to rule a slowdown out; ten steady ones do, unless the value leans that way.
        (Status.PASS, "gating", 1.0, [1.0], True),
        (Status.PASS, "gating", 0.95, [1.0] * 20, False),
        (Status.PASS, "gating", 1.04, [1.0] * 20, True),
    ],
)
def test_what_is_suspicious(status, lane, value, samples, expected):
    verdict = Verdict(metric="step_time", status=status, value=value, lane=lane, scope="machine")
    assert suspicious(verdict, STEP_TIME, samples, FLOOR) is expected


@given(times, st.floats(0.01, 100))
def test_throughput_is_suspected_as_its_time_is(samples, value):
    of_time = Verdict(metric="step_time", status=Status.PASS, value=value)
    of_rate = Verdict(metric="throughput", status=Status.PASS, value=1 / value)
    assert suspicious(of_time, STEP_TIME, samples, FLOOR) == suspicious(
        of_rate, THROUGHPUT, [1 / sample for sample in samples], FLOOR
    )

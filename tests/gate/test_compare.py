"""The comparator: known answers, properties, and the mutations that each must notice."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import PolicyError
from harness.gate import Policy, Status, compare
from harness.metrics.registry import Metric

LOWER = Metric("peak_memory", "MiB", "lower", "numeric", 0.0, digits="float64")
HIGHER = Metric("throughput", "token/s", "higher", "machine", 0.0, digits="float64")
MATCH = Metric("validation_perplexity", "", "match", "numeric", 0.0, digits="float64")
LOSS = Metric("loss", "nat", "match", "numeric", 0.0, curve=True, digits="float32")
COUNT = Metric("parameters", "", "match", "numeric", 0.0, digits="integer")

numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3))
positive = st.floats(0.01, 1e6).map(lambda x: round(x, 3))


def status(metric, value, baseline, relative=0.0, absolute=0.0, deviating_steps=0):
    return compare(metric, value, baseline, Policy(relative, absolute, deviating_steps)).status


class TestKnownAnswers:
    @pytest.mark.parametrize(
        ("steps", "allowed", "matching", "expected"),
        [
            (200, 2, 198, Status.PASS),
            (200, 2, 197, Status.REGRESSED),
            (200, 2, 21, Status.REGRESSED),
            (50, 1, 49, Status.PASS),
            (50, 1, 48, Status.REGRESSED),
        ],
    )
    def test_deviating_steps_are_counted_as_integers(self, steps, allowed, matching, expected):
        baseline = [5.0] * steps
        for order in (1, -1):
            run = ([5.0] * matching + [6.0] * (steps - matching))[::order]
            assert status(LOSS, run, baseline, 1e-3, deviating_steps=allowed) is expected

    @pytest.mark.parametrize(
        ("value", "baseline", "expected"),
        [
            (5.004, 5.0, Status.PASS),
            (5.006, 5.0, Status.REGRESSED),
            (1.0005, 5.0, Status.REGRESSED),
            (-2.001, -2.0, Status.PASS),
            (-2.003, -2.0, Status.REGRESSED),
            (2.0, -2.0, Status.REGRESSED),
        ],
    )
    def test_relative_tolerance(self, value, baseline, expected):
        assert status(MATCH, value, baseline, 1e-3) is expected

    def test_a_zero_baseline_divides_nothing(self):
        assert status(MATCH, 0.0, 0.0, 0.05) is Status.PASS
        assert status(MATCH, 2.0, 0.0, 0.05) is Status.REGRESSED
        assert status(MATCH, -2.0, 0.0, 0.05) is Status.REGRESSED
        assert compare(MATCH, 2.0, 0.0, Policy(0.05)).change is None

    def test_a_tolerance_finer_than_float32_is_refused(self):
        with pytest.raises(PolicyError, match=r"finer than float32 can tell at 1.4249971 \(spacing 1.19e-07\)"):
            compare(LOSS, [1.4249971], [1.4249971], Policy(1e-8))
        assert status(LOSS, [1.4249971], [1.4249971], 0.0) is Status.PASS
        assert status(LOSS, [1.4249971], [1.4249971], 1e-7) is Status.PASS

    def test_a_shorter_run_is_refused_by_name(self):
        verdict = compare(LOSS, [1.0] * 954, [1.0] * 4769, Policy(0.1))
        assert verdict.status is Status.INVALID
        assert verdict.reason == "wrong length: 954 steps against 4769 in the baseline (another scenario?)"

    def test_a_large_improvement_is_told(self):
        verdict = compare(HIGHER, 200.0, 100.0, Policy(0.05))
        assert verdict.status is Status.IMPROVED
        assert "approve it to tighten" in verdict.reason
        assert not verdict.fails

    def test_a_mean_that_was_stalled_regresses(self):
        assert status(LOWER, 220.0, 100.0, 0.15) is Status.REGRESSED


class TestDirection:
    """A flipped sign or a swapped direction turns one of these red."""

    @pytest.mark.parametrize(
        ("metric", "value", "expected"),
        [
            (LOWER, 111.0, Status.REGRESSED),
            (LOWER, 89.0, Status.IMPROVED),
            (HIGHER, 111.0, Status.IMPROVED),
            (HIGHER, 89.0, Status.REGRESSED),
            (MATCH, 111.0, Status.REGRESSED),
            (MATCH, 89.0, Status.REGRESSED),
        ],
    )
    def test_of_a_scalar(self, metric, value, expected):
        assert status(metric, value, 100.0, 0.1) is expected
        assert status(metric, 100.0 + (value - 100.0) * 0.9, 100.0, 0.1) is Status.PASS

    @pytest.mark.parametrize(
        ("metric", "value", "expected"),
        [(LOWER, -111.0, Status.IMPROVED), (LOWER, -89.0, Status.REGRESSED), (HIGHER, -111.0, Status.REGRESSED)],
    )
    def test_of_a_negative_scalar(self, metric, value, expected):
        assert status(metric, value, -100.0, 0.1) is expected

    @given(positive, st.floats(1.2, 3.0))
    def test_worse_and_better_are_opposites(self, baseline, factor):
        assert status(LOWER, baseline * factor, baseline, 0.1) is Status.REGRESSED
        assert status(HIGHER, baseline * factor, baseline, 0.1) is Status.IMPROVED
        assert status(LOWER, baseline / factor, baseline, 0.1) is Status.IMPROVED
        assert status(HIGHER, baseline / factor, baseline, 0.1) is Status.REGRESSED

    def test_of_a_curve_counts_each_side_by_itself(self):
        falling = Metric("x", "", "lower", "numeric", 0.0, curve=True, digits="float64")
        assert status(falling, [2.0, 0.5], [1.0, 1.0], 0.1, deviating_steps=1) is Status.PASS
        assert status(falling, [2.0, 2.0], [1.0, 1.0], 0.1, deviating_steps=1) is Status.REGRESSED
        assert status(falling, [0.5, 0.5], [1.0, 1.0], 0.1, deviating_steps=1) is Status.IMPROVED
        assert status(falling, [2.0, 0.5], [1.0, 1.0], 0.1) is Status.REGRESSED


class TestNonFinite:
    """A dropped NaN check turns one of these red: NaN compares false with everything."""

    @pytest.mark.parametrize("metric", [LOWER, HIGHER, MATCH])
    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_a_scalar_is_invalid(self, metric, value):
        verdict = compare(metric, value, 1.0, Policy(1e9))
        assert verdict.status is Status.INVALID
        assert verdict.fails
        assert "non-finite" in verdict.reason

    @given(st.lists(numbers, min_size=1, max_size=20), st.data())
    def test_a_curve_is_invalid_at_its_step(self, curve, data):
        at = data.draw(st.integers(0, len(curve) - 1))
        broken = [*curve[:at], math.nan, *curve[at + 1 :]]
        verdict = compare(LOSS, broken, curve, Policy(1.0, 1e9, deviating_steps=len(curve)))
        assert verdict.status is Status.INVALID
        assert verdict.step == at + 1
        assert verdict.reason.endswith(f"at step {at + 1}")

    def test_a_nan_equal_to_its_baseline_is_still_invalid(self):
        assert status(LOSS, [math.nan], [math.nan], 1.0) is Status.INVALID

    def test_a_non_finite_baseline_is_no_baseline(self):
        for bad in (math.nan, math.inf):
            verdict = compare(MATCH, 1.0, bad, Policy(1.0))
            assert verdict.status is Status.INVALID
            assert "the baseline is non-finite" in verdict.reason

    def test_without_a_baseline_too(self):
        assert status(MATCH, math.nan, None) is Status.INVALID


class TestMissing:
    def test_value(self):
        verdict = compare(LOSS, None, [1.0, 2.0], Policy(0.1))
        assert verdict.status is Status.INVALID
        assert verdict.baseline == 2.0
        assert verdict.fails
        assert status(MATCH, None, None) is Status.INVALID

    def test_baseline(self):
        assert status(MATCH, 1.0, None) is Status.NO_BASELINE
        assert compare(MATCH, 1.0, None, Policy(0.1)).fails
        assert not compare(HIGHER, 1.0, None, Policy(0.1)).fails

    def test_an_empty_curve_is_not_a_match(self):
        assert status(LOSS, [], []) is Status.INVALID
        assert status(LOSS, [], None) is Status.INVALID
        assert status(LOSS, [1.0], []) is Status.INVALID


class TestCurve:
    def test_first_deviating_step_is_named(self):
        verdict = compare(LOSS, [5.0, 4.0, 3.5, 3.5], [5.0, 4.0, 3.0, 2.0], Policy(1e-3))
        assert verdict.status is Status.REGRESSED
        assert (verdict.step, verdict.value, verdict.baseline) == (3, 3.5, 3.0)
        assert verdict.reason.startswith("late drift: 2 of 4 steps deviate, first at step 3; 0 allowed")
        assert verdict.divergence == "late"

    @pytest.mark.parametrize(
        ("deviating", "divergence", "course"),
        [
            (range(1, 40), "early", "early divergence: 39 of 40 steps deviate, first at step 2"),
            (range(9, 40), "early", "early divergence: "),
            (range(10, 40), "late", "late drift: "),
            ([39], "late", "late drift: 1 of 40 steps"),
            ([3, 4], "early", "early divergence, back in the band at the end: 2 of 40"),
            ([20], "late", "late drift, back in the band at the end: 1 of 40"),
        ],
    )
    def test_early_divergence_is_told_from_late_drift(self, deviating, divergence, course):
        run = [2.0 if step in deviating else 1.0 for step in range(40)]
        verdict = compare(LOSS, run, [1.0] * 40, Policy(1e-3))
        assert verdict.divergence == divergence
        assert verdict.reason.startswith(course)

    def test_what_did_not_regress_has_no_divergence(self):
        assert compare(LOSS, [1.0], [1.0], Policy(1e-3)).divergence is None
        assert compare(HIGHER, 0.5, 1.0, Policy(1e-3)).divergence is None

    def test_the_end_step_counts_once(self):
        baseline = [1.0] * 10
        assert status(LOSS, [*baseline[:-1], 2.0], baseline, 1e-3, deviating_steps=1) is Status.PASS
        assert status(LOSS, [*baseline[:-1], 2.0], baseline, 1e-3) is Status.REGRESSED

    def test_a_longer_run_is_invalid(self):
        assert status(LOSS, [1.0, 1.0], [1.0], 1.0, 1e9, 10) is Status.INVALID

    def test_a_scalar_gets_no_allowance(self):
        assert status(LOWER, 200.0, 100.0, 0.1, deviating_steps=5) is Status.REGRESSED

    @given(st.lists(positive, min_size=1, max_size=30), st.integers(0, 30), st.integers(0, 30))
    def test_passes_exactly_when_the_count_is_within_the_allowance(self, baseline, deviating, allowed):
        deviating = min(deviating, len(baseline))
        run = [2 * x if i < deviating else x for i, x in enumerate(baseline)]
        expected = Status.PASS if deviating <= allowed else Status.REGRESSED
        assert status(LOSS, run, baseline, 1e-2, deviating_steps=allowed) is expected

    @given(st.lists(st.tuples(positive, positive), min_size=1, max_size=20), st.permutations(range(20)))
    def test_order_of_steps_does_not_matter(self, pairs, order):
        shuffled = [pairs[i] for i in order if i < len(pairs)]
        verdicts = {status(LOSS, *map(list, zip(*p, strict=True)), 0.1, 0.0, 2) for p in (pairs, shuffled)}
        assert len(verdicts) == 1


class TestTolerance:
    @given(numbers, st.floats(0, 1).map(lambda x: round(x, 3)))
    def test_a_value_equal_to_its_baseline_passes(self, value, relative):
        for metric in (LOWER, HIGHER, MATCH):
            assert status(metric, value, value, relative) is Status.PASS

    @given(numbers, st.floats(-0.99, 0.99), st.floats(1e-3, 1), st.floats(1e-3, 10))
    def test_a_wider_tolerance_never_turns_a_pass_red(self, baseline, share, relative, absolute):
        value = baseline + share * max(relative * abs(baseline), absolute)
        assert status(MATCH, value, baseline, relative, absolute) is Status.PASS
        assert status(MATCH, value, baseline, relative * 2, absolute + 1) is Status.PASS

    @given(numbers, numbers, st.floats(1e-3, 1))
    def test_matching_is_symmetric_in_sign(self, value, baseline, relative):
        assert status(MATCH, value, baseline, relative, 1e-3) is status(MATCH, -value, -baseline, relative, 1e-3)

    def test_the_larger_of_the_two_holds(self):
        assert status(MATCH, 104.0, 100.0, 0.01, 5.0) is Status.PASS
        assert status(MATCH, 104.0, 100.0, 0.05, 1.0) is Status.PASS
        assert status(MATCH, 104.0, 100.0, 0.01, 1.0) is Status.REGRESSED

    def test_the_edge_belongs_to_the_tolerance(self):
        assert status(MATCH, 1.5, 1.0, 0.5) is Status.PASS
        assert status(MATCH, 0.5, 1.0, 0.5) is Status.PASS
        assert status(MATCH, math.nextafter(1.5, 2), 1.0, 0.5) is Status.REGRESSED

    def test_the_share_is_of_the_baseline_not_of_the_value(self):
        assert status(MATCH, 110.9, 100.0, 0.1) is Status.REGRESSED
        assert status(MATCH, 90.0, 100.0, 0.1) is Status.PASS

    def test_integers_compare_exactly(self):
        assert status(COUNT, 918656, 918656) is Status.PASS
        assert status(COUNT, 918657, 918656) is Status.REGRESSED
        assert status(COUNT, 918657, 918656, 0.0, 0.5) is Status.REGRESSED


def test_a_verdict_carries_what_a_reader_needs():
    verdict = compare(LOWER, 120.0, 100.0, Policy(0.1, lane="advisory"))
    assert (verdict.metric, verdict.unit, verdict.scope) == ("peak_memory", "MiB", "numeric")
    assert verdict.change == pytest.approx(0.2)
    assert verdict.status is Status.REGRESSED
    assert not verdict.fails
    assert compare(LOWER, -120.0, -100.0, Policy(0.1)).change == pytest.approx(-0.2)


class TestRecordedSteps:
    """A curve whose values belong to steps of their own."""

    STEPS = (10, 20, 40)

    def test_the_first_deviating_step_is_named_by_its_number(self):
        verdict = compare(LOSS, [3.0, 9.0, 1.0], [3.0, 2.0, 1.0], Policy(1e-3), self.STEPS)
        assert verdict.step == 20
        assert "first at step 20" in verdict.reason
        assert verdict.steps == [10, 20, 40]

    def test_so_are_the_last_one_and_one_that_is_no_number(self):
        assert compare(LOSS, [3.0, 2.0, 1.0], [3.0, 2.0, 1.0], Policy(1e-3), self.STEPS).step == 40
        assert compare(LOSS, [3.0, 2.0, 1.0], None, Policy(1e-3), self.STEPS).step == 40
        found = compare(LOSS, [3.0, math.nan, 1.0], [3.0, 2.0, 1.0], Policy(1e-3), self.STEPS)
        assert (found.step, "at step 20" in found.reason) == (20, True)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import Undefined
from harness.metrics.speed import steady_spread, steady_step_time, step_flops, throughput, training_flops
from harness.models import PRESETS


def test_compile_time_is_left_out():
    assert throughput([660.0] + [7.84] * 100, 64, warmup=1) == pytest.approx(8.163, abs=1e-3)


def test_slow_steps_are_not_dropped():
    assert steady_step_time([100, 100, 100, 400, 400], warmup=0) == 220
    assert throughput([0.1, 0.1, 0.1, 0.4, 0.4], 1, warmup=0) == pytest.approx(1 / 0.22)


def test_fewer_steps_than_warmup_is_undefined():
    with pytest.raises(Undefined, match="2 steps were run and the first 2 are warm-up"):
        throughput([1.0, 1.0], 64, warmup=2)


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=30), st.integers(0, 2), st.floats(1, 100))
def test_throughput_is_units_over_time(seconds, warmup, units):
    steady = seconds[warmup:]
    assert throughput(seconds, units, warmup) == pytest.approx(units * len(steady) / sum(steady))


def test_flops_of_a_known_model():
    flops = training_flops(1, 1024, layers=2, width=1024, feed_forward=4096, vocabulary=32_000)
    assert flops == pytest.approx(381.715218e9, rel=1e-8)


def test_flops_grow_with_the_batch_and_a_gated_layer_has_three_matrices():
    model = PRESETS["tiny"]
    assert step_flops(model, 8, 128) == 2 * step_flops(model, 4, 128)
    gated = training_flops(1, 8, 1, 16, 32, 256, gated=True)
    assert gated - training_flops(1, 8, 1, 16, 32, 256) == 3 * 8 * 2 * 16 * 32


@pytest.mark.parametrize("bad", [-1e-9, float("nan"), float("inf")])
def test_a_step_that_no_clock_could_measure_is_undefined(bad):
    with pytest.raises(Undefined, match=r"step 2 took .* the clock stepped back"):
        steady_step_time([1.0, bad, 1.0], warmup=0)
    with pytest.raises(Undefined, match="the clock stood still"):
        throughput([0.0, 0.0], 1, warmup=0)


def test_spread_is_that_of_the_steady_steps():
    assert steady_spread([99.0, 1.0, 1.0, 1.0, 1.0], warmup=1) == 0.0
    assert steady_spread([1.0, 2.0, 3.0, 4.0, 5.0], warmup=0) == pytest.approx(3.0 / 3.0)
    assert steady_spread([1.0, 2.0, 3.0, 4.0, 5.0], warmup=2) is None

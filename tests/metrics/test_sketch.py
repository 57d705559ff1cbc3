import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics.sketch import SIGNS, distance, sketch


def values(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@given(st.integers(0, 100), st.sampled_from([(6,), (4, 6), (6, 4)]), st.sampled_from([0, -1]), st.sampled_from([1, 2]))
def test_the_shards_sketches_add_up_to_the_wholes(seed, shape, axis, shards):
    whole = values(seed, *shape)
    parts = [sketch("w", part, axis, i, shards) for i, part in enumerate(np.split(whole, shards, axis))]
    assert np.sum(parts, axis=0) == pytest.approx(sketch("w", whole), abs=1e-5)


@given(st.integers(0, 50), st.floats(1e-6, 1e3))
def test_the_distance_of_sketches_is_about_that_of_the_vectors(seed, scale):
    """Within a factor of two: 16 signs leave a standard deviation of a fifth."""
    one, step = values(seed, 500), values(seed + 1000, 500) * np.float32(scale)
    found = distance(sketch("w", one), sketch("w", one + step))
    assert 0.5 < found / np.linalg.norm((one + step).astype(np.float64) - one) < 2


def test_equal_vectors_have_no_distance_and_names_have_their_own_signs():
    assert distance(sketch("w", values(1, 9)), sketch("w", values(1, 9))) == 0
    assert sketch("w", values(1, 9)) != sketch("v", values(1, 9))
    assert len(sketch("w", np.float32(2.5))) == SIGNS

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics.norms import global_norm


@pytest.mark.parametrize(
    ("parts", "norm"),
    [
        ([(9.0, 1), (16.0 * 8, 8)], 5.0),
        ([(9.0, 1)] * 4, 6.0),
        ([(256.0**2, 1)], 256.0),
        ([(2 * 800.0, 2)], math.sqrt(800)),
        ([], 0.0),
    ],
)
def test_known_norms(parts, norm):
    assert global_norm(parts) == pytest.approx(norm)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 8))
def test_copies_count_once(squares, replicas):
    assert global_norm([(s * replicas, replicas) for s in squares]) == pytest.approx(
        global_norm([(s, 1) for s in squares])
    )

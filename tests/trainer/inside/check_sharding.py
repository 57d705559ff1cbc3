"""Which replica owns which parameter. (That sharded ranks train what one process does, a suite shows.)"""

import mindspore as ms
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mindspore import Parameter, Tensor

from harness.errors import ScenarioError
from harness.trainer.parallel.sharding import ShardedAdamW, owners

sizes = st.lists(st.integers(1, 1000), min_size=1, max_size=40)


@given(sizes, st.integers(1, 8))
def test_every_parameter_has_one_owner_and_none_has_much_more_than_its_share(sizes, replicas):
    found = owners(sizes, replicas)
    assert len(found) == len(sizes)
    assert set(found) <= set(range(replicas))
    loads = [sum(size for size, owner in zip(sizes, found, strict=True) if owner == r) for r in range(replicas)]
    # The last one put onto the fullest found it emptiest: it is at most one parameter above the mean.
    assert max(loads) <= sum(sizes) / replicas + max(sizes)


@given(sizes)
def test_all_ranks_come_to_the_same_owners(sizes):
    assert owners(sizes, 3) == owners(list(sizes), 3)
    assert set(owners(sizes, 1)) == {0}


def test_each_replica_keeps_its_own_moments_only():
    shapes = {"a": (4, 4), "b": (4,), "c": (2, 6)}
    weights = [Parameter(Tensor(np.ones(shape, np.float32)), name=name) for name, shape in shapes.items()]
    kept = [
        [state.name for state in ShardedAdamW(ms.ParameterTuple(weights), 0.1, 2, replica, "data").states()]
        for replica in range(2)
    ]
    assert kept[0] == ["first_moment.a", "second_moment.a"]
    assert kept[1] == ["first_moment.b", "first_moment.c", "second_moment.b", "second_moment.c"]


def test_a_replica_without_a_parameter_of_its_own_is_refused():
    weights = ms.ParameterTuple([Parameter(Tensor(np.ones(4, np.float32)), name="w")])
    with pytest.raises(ScenarioError, match=r"layout.dp=2 disagree: the model has 1 parameters"):
        ShardedAdamW(weights, 0.1, 2, 0, "data")

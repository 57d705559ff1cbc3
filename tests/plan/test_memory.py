"""What a device needs, by arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.scenarios import DEEP, SEED_13B
from harness import Layout, Scenario
from harness.errors import PlanError
from harness.models import PRESETS
from harness.plan import memory, pool_peak, stage_parameters

SMALL = Scenario(model="decoder:layers=4,width=64,heads=4,feed_forward=192", batch=8, eval_sequences=0)


def test_adam_states_of_13_billion_parameters_are_104_gigabytes():
    """Two float32 moments a parameter."""
    needs = memory(Scenario(model="13b"), 0)
    assert needs.optimizer == pytest.approx(104e9, rel=0.01)
    assert needs.optimizer == 2 * needs.parameters


def test_the_stages_of_the_13_billion_parameters_hold_all_of_them():
    """Four shards of four stages; norms are on every shard."""
    norms = PRESETS["13b"].width * (2 * PRESETS["13b"].layers + 1)
    whole = 4 * sum(stage_parameters(SEED_13B, stage) for stage in range(4))
    assert whole == PRESETS["13b"].parameters + 3 * norms


@given(tp=st.sampled_from([1, 2, 4]), pp=st.sampled_from([1, 2, 4]), tied=st.booleans())
def test_cutting_loses_no_parameter(tp, pp, tied):
    """Beside norms, which every shard has, and a tied table, which both ends of a pipeline have."""
    model = f"{SMALL.model},tied={int(tied)}"
    found = sum(stage_parameters(SMALL.replace(model=model, layout=Layout(tp=tp, pp=pp)), s) for s in range(pp)) * tp
    copies = 64 * 256 if tied and pp > 1 else 0
    whole = stage_parameters(SMALL.replace(model=model), 0)
    assert found == whole + copies + (tp - 1) * 64 * (2 * 4 + 1)


@given(dp=st.sampled_from([2, 4, 8]))
def test_sharded_states_are_one_nth(dp):
    plain, sharded = (memory(SMALL.replace(layout=Layout(dp=dp, optimizer_sharding=on)), 0) for on in (False, True))
    assert plain.optimizer == dp * sharded.optimizer
    assert plain.parameters == sharded.parameters


@given(st.integers(1, 16), st.sampled_from([32, 64, 128]))
def test_activations_grow_with_the_rows_and_not_with_accumulation(rows, sequence):
    one = memory(SMALL.replace(batch=1, sequence=sequence), 0)
    many = memory(SMALL.replace(batch=rows, sequence=sequence), 0)
    parts = memory(SMALL.replace(batch=rows, sequence=sequence, accumulation=rows), 0)
    assert many.activations == pytest.approx(rows * one.activations)
    assert parts.activations == pytest.approx(one.activations)


def test_recomputing_more_keeps_less():
    none, middle, full = (memory(DEEP.replace(recompute=which), 0).activations for which in ("none", "middle", "full"))
    assert none > middle > full


def test_gpipe_needs_more_than_1f1b_and_the_first_stage_most_of_it():
    """MindSpore's own engine keeps the activations of every micro-batch in flight; ours their inputs alone."""
    pipeline = SEED_13B.replace(recompute="none", micro_batches=16)
    needs = [memory(pipeline, stage).activations for stage in range(4)]
    assert needs == sorted(needs, reverse=True)
    explicit = SMALL.replace(layout=Layout(pp=2), batch=8, micro_batches=8)
    assert pool_peak(explicit.replace(pipeline_schedule="gpipe")) > pool_peak(explicit)


def test_a_model_of_the_users_own_has_no_known_sizes():
    with pytest.raises(PlanError, match="can't be planned: its sizes are not known"):
        memory(Scenario(model="mine:model"), 0)

import math

import pytest

from harness import Layout, Scenario
from harness.environment import Host
from harness.errors import Undefined
from harness.run import Load, RankReport, Run, assemble

SCENARIO = Scenario(model="nano", steps=5, batch=4, sequence=10, layout=Layout(dp=2), samples=2)


HOST = Host("cpu", "x86_64", "m")


def report(rank=0, **changes):
    fields = {
        "rank": rank,
        "scenario_hash": SCENARIO.hash,
        "mindspore": "2.10.0",
        "data": "text-1",
        "parameters": 10,
        "parameter_digest": "same",
        "step_seconds": [9.0, 1.0, 1.0, 2.0, 3.0],
        "curves": {"loss": [3.0, 2.0, 1.0, 1.0, 1.0]},
        "nll_sum": 20.0,
        "nll_tokens": 10,
        "samples": [[1, 2, 1, 2, 1, 2], [3, 4, 5]],
        "peak_memory": 10.0,
    }
    return RankReport(**{**fields, **changes})


def run(*reports):
    return assemble(SCENARIO, HOST, list(reports))


def test_a_step_is_over_when_its_slowest_rank_is():
    found = run(report(0), report(1, step_seconds=[1.0, 1.0, 4.0, 1.0, 1.0], peak_memory=30.0))
    assert found.step_seconds == [9.0, 1.0, 4.0, 2.0, 3.0]
    assert found["step_time"] == 3.0
    assert found["throughput"] == pytest.approx(40 / 3)
    assert found["compile_time"] == 6.0
    assert found["peak_memory"] == 30.0
    assert found.typical_step_time == 3.0


def test_text_metrics():
    found = run(report(0), report(1))
    assert found["validation_perplexity"] == pytest.approx(math.exp(2.0))
    assert found["distinct_1"] == 5 / 9
    assert found["distinct_3"] == 3 / 5
    assert found["repetition"] == pytest.approx(2 / 5)


def test_replicas_that_differ_are_counted():
    assert run(report(0), report(1))["diverged_replicas"] == 0
    assert run(report(0), report(1, parameter_digest="other"))["diverged_replicas"] == 1


def test_what_is_undefined_says_why_and_is_never_zero():
    short = run(report(0, step_seconds=[1.0, 1.0], nll_tokens=0, samples=[[1], [2]], peak_memory=None))
    for name, reason in {
        "throughput": "first 2 are warm-up",
        "validation_perplexity": "no token counts",
        "distinct_3": "no 3-gram",
        "peak_memory": "no pool statistics",
    }.items():
        assert name not in short.metrics
        with pytest.raises(Undefined, match=reason):
            short[name]
    with pytest.raises(Undefined, match="no metric 'speed'; it has"):
        short["speed"]
    with pytest.raises(Undefined, match="no curve 'loss2'; it has loss"):
        short.curve("loss2")


def test_json_round_trip_keeps_nan():
    found = run(report(0, curves={"loss": [1.0, math.nan, math.inf, 1.0, 1.0]}))
    back = Run.model_validate_json(found.model_dump_json())
    assert math.isnan(back.curve("loss")[1])
    assert back.curve("loss")[2] == math.inf
    assert back.description == SCENARIO


def test_load_of_others_is_what_the_ranks_did_not_use():
    ours = {"cores": 2, "seconds": 10.0}
    alone = run(report(0, load=Load(busy=19.0, own=9.0, **ours)), report(1, load=Load(busy=19.0, own=10.0, **ours)))
    assert alone.foreign_load == 0.0
    beside = run(report(0, load=Load(busy=19.0, own=9.0, **ours)), report(1, load=Load(busy=19.0, own=5.0, **ours)))
    assert beside.foreign_load == pytest.approx(0.25)
    assert run(report(0, load=Load(busy=19.0, own=9.0, **ours)), report(1)).foreign_load is None


def test_a_clock_that_steps_back_leaves_no_time():
    back = run(report(0, step_seconds=[9.0, 1.0, 1.0, -2.0, 1.0]), report(1, step_seconds=[9.0, 1.0, 1.0, -2.0, 1.0]))
    for name in ("step_time", "throughput", "compile_time", "achieved_flops"):
        assert name not in back.metrics
        assert "step 4 took -2 s: the clock stepped back" in back.undefined[name]


def test_optimizer_memory_is_that_of_the_fullest_rank():
    assert run(report(0, optimizer_memory=1.0), report(1, optimizer_memory=2.0))["optimizer_memory"] == 2.0
    assert "optimizer_memory" not in run(report(0), report(1)).metrics


def test_communication_is_that_of_the_busiest_rank():
    calls = [("AllReduce", 2**20), ("AllGather", 2**19)]
    found = run(report(0, collectives=calls[:1]), report(1, collectives=calls))
    assert (found["communication_calls"], found["communication_volume"]) == (2, 1.5)
    assert "communication_calls" not in run(report(0, collectives=[]), report(1, collectives=[])).metrics

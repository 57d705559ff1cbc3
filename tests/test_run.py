import math

import pytest

from harness import Layout, Scenario
from harness.assemble import assemble, foreign_share
from harness.environment import Host
from harness.errors import Undefined
from harness.run import Evaluation, Held, Load, RankReport, Run
from harness.timeline import Event

SCENARIO = Scenario(model="nano", steps=5, batch=4, sequence=10, layout=Layout(dp=2), samples=2)


HOST = Host("cpu", "x86_64", "m", cores=2)


def held(name="w", digest="same", **changes):
    return Held(**{"name": name, "size": 10, "digest": digest, "squares": 4.0, "sketch": [1.0, -1.0], **changes})


def report(rank=0, **changes):
    fields = {
        "rank": rank,
        "scenario_hash": SCENARIO.hash,
        "mindspore": "2.10.0",
        "data": "text-1",
        "held": [held()],
        "step_seconds": [9.0, 1.0, 1.0, 2.0, 3.0],
        "curves": {"loss": [3.0, 2.0, 1.0, 1.0, 1.0]},
        "evaluation": Evaluation(20.0, 10, 4),
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


def test_what_loads_its_graphs_has_no_time_of_compiling():
    found = run(report(0), report(1, reused_graphs=3))
    assert found.reused_graphs == 3
    assert found["step_time"] > 0
    assert "compile_time" not in found.metrics
    assert "3 graphs were reused" in found.undefined["compile_time"]


def test_text_metrics():
    found = run(report(0), report(1))
    assert found["validation_perplexity"] == pytest.approx(math.exp(2.0))
    assert found["distinct_1"] == 5 / 9
    assert found["distinct_3"] == 3 / 5
    assert found["repetition"] == pytest.approx(2 / 5)
    assert found["token_accuracy"] == 0.4
    assert found["longest_repeat"] == 2.0
    assert found["self_similarity"] == 0.0
    assert found["empty_outputs"] == 1.0


def test_evaluations_and_samplings_become_curves():
    evaluations = [Evaluation(30.0, 10, 2), Evaluation(20.0, 10, 4)]
    samplings = [[[1, 1, 1, 1]], [[1, 2, 3, 4]]]
    found = run(report(0, evaluations=evaluations, samplings=samplings), report(1))
    assert found.curve("perplexity_curve") == pytest.approx([math.exp(3), math.exp(2)])
    assert found.curve("token_accuracy_curve") == (0.2, 0.4)
    assert found.curve("distinct_3_curve") == (0.5, 1.0)
    assert "perplexity_curve" not in run(report(0), report(1)).curves


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (Evaluation(1900.0, 1000, 400), True),
        # What chance explains, what did not improve, and what got better in both.
        (Evaluation(1900.0, 1000, 470), False),
        (Evaluation(1999.0, 1000, 400), False),
        (Evaluation(2100.0, 1000, 400), False),
        (Evaluation(1900.0, 1000, 600), False),
    ],
)
def test_metrics_that_disagree_are_told(after, told):
    found = run(report(0, evaluations=[Evaluation(2000.0, 1000, 500), after]), report(1))
    assert bool(found.warnings) == told
    if told:
        assert "token accuracy fell from 50.00% to 40.00%: they disagree" in found.warnings[0]


def test_replicas_that_differ_are_counted():
    assert run(report(0), report(1))["diverged_replicas"] == 0
    assert run(report(0), report(1, held=[held(digest="other")]))["diverged_replicas"] == 1


def test_shards_are_no_copies_and_make_the_whole():
    """Two shards of one parameter differ by rights; a norm and a sketch of the whole come of both."""
    shards = [held(shard=i, shards=2, digest=str(i), squares=[9.0, 16.0][i]) for i in range(2)]
    found = run(report(0, held=shards[:1]), report(1, held=shards[1:]))
    assert found["diverged_replicas"] == 0
    assert found["parameters"] == 20
    assert found.weights["w"].norm == 5.0
    assert found.weights["w"].sketch == [2.0, -2.0]


def test_the_distance_of_parameters_is_that_of_the_worst():
    one = run(report(held=[held("a"), held("b")]), report(1, held=[]))
    other = run(report(held=[held("a"), held("b", sketch=[1.2, -1.0])]), report(1, held=[]))
    assert one.parameter_distance(one) == 0
    assert one.parameter_distance(other) == pytest.approx(math.sqrt(0.2**2 / 2) / 2)
    with pytest.raises(Undefined, match="not the same parameters: b"):
        one.parameter_distance(run(report(held=[held("a")]), report(1, held=[])))


def test_each_core_is_looked_at_once():
    """Bound to a core each, to one core together, or unbound: neighbours take half of the time."""
    bound = [Load(cores=1, on=[core], seconds=10.0, busy=9.0, own=4.0) for core in range(2)]
    assert foreign_share(bound) == pytest.approx(0.5)
    together = [Load(cores=1, on=[0], seconds=10.0, busy=9.0, own=2.0) for _ in range(2)]
    assert foreign_share(together) == pytest.approx(0.5)
    unbound = [Load(cores=2, on=[0, 1], seconds=10.0, busy=18.0, own=4.0) for _ in range(2)]
    assert foreign_share(unbound) == pytest.approx(0.5)


def test_a_graph_pipelines_loss_is_that_of_its_last_stage():
    scenario = PIPELINE.replace(engine="semi_auto", eval_sequences=0, samples=0)
    work = [Event(1, "compute", "step", 0, 1)]
    reports = [
        report(rank, held=[], events=work, curves={"loss": [rank + 1.0]}, samples=[], evaluation=None)
        for rank in range(2)
    ]
    found = assemble(scenario, HOST, reports)
    assert found.curve("loss") == (2.0,)
    for name in ("diverged_replicas", "bubble_ratio", "exposed_communication", "parameters"):
        assert name not in found.metrics
        assert name not in found.undefined


def events(seconds):
    return [Event(step, "compute", "gradients", step + 100.0, step + 100.0 + seconds) for step in range(3)]


def test_a_rank_that_computes_longer_than_its_like_is_named():
    found = run(report(0, events=events(0.1)), report(1, events=events(0.25)))
    assert found.straggler == "rank 1 holds up the others: it computes 2.5 times as long as the fastest of its kind"
    assert found.events[0][0].start == 0.0
    assert run(report(0, events=events(0.1)), report(1, events=events(0.12))).straggler == ""
    assert run(report(0), report(1)).straggler == ""


def test_a_run_too_short_to_be_recorded_has_no_events():
    """Not a list of empty lists: there is no step to draw."""
    assert run(report(0), report(1)).events == []
    alone = [Event(0, "alone", name, 0, 1) for name in ("F0", "B0")]
    found = assemble(PIPELINE, HOST, [report(rank, events=alone) for rank in range(2)])
    assert found["replayed_bubble_ratio"] == pytest.approx(1 / 3)
    assert "exposed_communication" not in found.metrics
    with pytest.raises(Undefined, match="no step was recorded"):
        found["bubble_ratio"]


PIPELINE = SCENARIO.replace(layout=Layout(pp=2), micro_batches=2)


def stage(rank, names):
    found = [Event(1, "compute", name, *times) for name, times in names.items()]
    found += [event._replace(step=0, kind="alone") for event in found]
    return report(rank, scenario_hash=PIPELINE.hash, events=found, in_flight_memory=1.0 + rank)


STAGES = (
    stage(0, {"F0": (0, 1), "F1": (1, 2), "B0": (4, 6), "B1": (7, 9)}),
    stage(1, {"F0": (1, 2), "B0": (2, 4), "F1": (4, 5), "B1": (5, 7)}),
)


def test_a_pipeline_has_a_bubble():
    """Of 9 s, each rank works 6: a third, as (p − 1) / (m + p − 1) says; the replay of the same durations agrees."""
    found = assemble(PIPELINE, HOST, list(STAGES))
    assert found["bubble_ratio"] == pytest.approx(1 / 3)
    assert found["replayed_bubble_ratio"] == pytest.approx(1 / 3)
    assert found["in_flight_memory"] == 2.0
    assert found["exposed_communication"] == 0.0


def test_more_ranks_than_cores_have_no_bubble_of_their_own():
    found = assemble(PIPELINE, Host("cpu", "x86_64", "m", cores=1), list(STAGES))
    assert found.oversubscribed.startswith("2 ranks share 1 cores")
    with pytest.raises(Undefined, match="2 ranks share 1 cores"):
        found["bubble_ratio"]
    assert found["replayed_bubble_ratio"] == pytest.approx(1 / 3)
    assert assemble(PIPELINE, Host("gpu", "x86_64", "m", cores=1), list(STAGES)).oversubscribed == ""


def test_what_is_undefined_says_why_and_is_never_zero():
    nothing = Evaluation(20.0, 0, 0)
    short = run(report(0, step_seconds=[1.0, 1.0], evaluation=nothing, samples=[[1], [2]], peak_memory=None))
    for name, reason in {
        "throughput": "first 2 are warm-up",
        "validation_perplexity": "no token counts",
        "token_accuracy": "no token counts",
        "self_similarity": "fewer than two sequences",
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


@pytest.mark.parametrize(("waited", "share"), [(0.0, 0.0), (0.025, 0.2), (0.3, 0.75)])
def test_the_rank_that_waits_most_for_its_rows_says_how_long(waited, share):
    """Steps of 0.1 s; the first two waits are warm-up."""
    reports = [
        report(rank, step_seconds=[9.0, 9.0, 0.1, 0.1], data_seconds=[5.0, 5.0, late, late])
        for rank, late in enumerate((0.0, waited))
    ]
    found = assemble(SCENARIO.replace(steps=4), HOST, reports)
    assert found["data_wait"] == pytest.approx(share)
    assert bool(found.warnings) == (share >= 0.3)
    if found.warnings:
        assert "waits for its rows for 75% of the time" in found.warnings[0]


def test_a_stage_that_is_slower_is_no_bubble():
    """The second takes twice as long for all it does: busy for 8 of 10, it waits for one forward and one backward."""
    events = [[Event(0, "alone", name, 0, seconds) for name in ("F0", "B0")] for seconds in (1.0, 2.0)]
    found = assemble(PIPELINE, HOST, [report(rank, events=own) for rank, own in enumerate(events)])
    assert found["replayed_bubble_ratio"] == pytest.approx(0.2)


def test_host_memory_grows_after_its_first_third():
    """Thirty values of a cache that fills, then half a MiB every third step."""
    found = run(report(host_memory=[100.0 + 9 * i for i in range(30)] + [400 + 0.5 * i for i in range(60)]))
    assert found.host_memory_growth.slope == pytest.approx(0.5)
    with pytest.raises(Undefined, match="tell of no growth"):
        _ = run(report()).host_memory_growth

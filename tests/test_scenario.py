import json

import pytest
from hypothesis import given

from harness import Layout, Scenario
from harness.checkpoints.policy import Checkpoints
from harness.errors import ScenarioError
from harness.guard import Guard
from harness.scenario import SEMANTICS
from tests.strategies import scenarios


@given(scenarios())
def test_json_round_trip_keeps_scenario_and_hash(scenario):
    back = Scenario.from_dict(json.loads(json.dumps(scenario.to_dict())))
    assert back == scenario
    assert back.hash == scenario.hash
    assert hash(back) == hash(scenario)


@given(scenarios(), scenarios())
def test_hash_tells_scenarios_apart(one, other):
    assert (one.hash == other.hash) == (one == other)
    assert bool(one.differences(other)) == (one != other)


def test_defaults_are_pinned():
    """Whoever changes a default raises SEMANTICS as well: the hash leaves defaults out, so it can't tell by itself."""
    assert SEMANTICS == 1
    assert Scenario().to_dict() == {
        "model": "tiny",
        "data": "text",
        "step": "",
        "steps": 20,
        "batch": 16,
        "sequence": 128,
        "accumulation": 1,
        "micro_batches": 1,
        "precision": "float32",
        "mode": "graph",
        "execution_order": "ready",
        "graph_kernel": False,
        "compile_cache": False,
        "optimizer": "adamw",
        "learning_rate": 1e-3,
        "schedule": "cosine",
        "warmup_steps": 0,
        "weight_decay": 0.1,
        "clip_norm": 1.0,
        "recompute": "none",
        "fused_reduction": True,
        "pipeline_schedule": "1f1b",
        "chunks": 1,
        "engine": "explicit",
        "strategy": "",
        "layout": {"dp": 1, "tp": 1, "pp": 1, "optimizer_sharding": False},
        "seed": 0,
        "eval_every": 0,
        "eval_sequences": 128,
        "samples": 0,
        "sample_tokens": 64,
        "sample_every": 0,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "quick_sequences": 0,
        "profiled_steps": 0,
        "trace_every": 0,
        "checkpoints": {"every": 0, "kept": 5, "best": "", "format": "safetensors"},
        "guard": {"policy": "", "consecutive": 3, "window": 20, "deviations": 15.0},
        "masking": 0.0,
        "bad_records": "fail",
        "shuffle_sentences": False,
        "data_workers": 1,
        "data_prefetch": 16,
        "data_processes": False,
    }
    assert Scenario(steps=21).hash == "4f18a8496dc35897"


def test_a_default_inside_the_layout_is_left_out_of_the_hash_too():
    assert Scenario(layout=Layout(dp=2)).hash == "7a5627a809894c5a"


def test_replace_changes_one_field():
    changed = Scenario().replace(recompute="full")
    assert changed.recompute == "full"
    assert Scenario().differences(changed) == ["recompute: none → full"]
    with pytest.raises(ScenarioError, match=r"no field 'recomputation'; did you mean 'recompute'"):
        Scenario().replace(recomputation="full")


def test_the_rank_that_has_the_loss_reports():
    pipeline = Scenario(layout=Layout(dp=2, pp=2), micro_batches=2, eval_sequences=0)
    assert (pipeline.reporting_rank, pipeline.micro_batch_rows) == (0, 4)
    assert pipeline.replace(engine="semi_auto").reporting_rank == 3
    assert pipeline.replace(engine="semi_auto", layout=Layout(dp=2), micro_batches=1).reporting_rank == 0


def test_is_frozen():
    with pytest.raises(AttributeError):
        Scenario().steps = 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "tinny"}, r"model='tinny' .* did you mean 'tiny'"),
        ({"model": "a.b:"}, "neither a preset nor"),
        ({"data": "prose.txt"}, r"data='prose.txt' is unknown; use 'text', 'text:FILE'"),
        ({"data": "text:"}, "is unknown"),
        ({"data": "text:/home/ada/prose.txt"}, "leaves the project"),
        ({"data": "text:a/../../prose.txt"}, "leaves the project"),
        ({"data": None}, "data must be a text, not None"),
        ({"model": 7}, "model must be a text, not 7"),
        ({"eval_every": 30, "steps": 20}, "eval_every=30 and steps=20 disagree"),
        ({"steps": 0}, "steps must be a whole number of at least 1, not 0"),
        ({"steps": True}, "steps must be a whole number"),
        ({"batch": 2.0}, "batch must be a whole number"),
        ({"sequence": 1}, "sequence must be a whole number of at least 2"),
        ({"precision": "float8"}, "precision='float8' is unknown; choose one of float32, float16, bfloat16"),
        ({"mode": "eager"}, "mode='eager' is unknown"),
        ({"optimizer": "lion"}, "optimizer='lion' is unknown"),
        ({"schedule": "step"}, "schedule='step' is unknown"),
        ({"recompute": "some"}, "recompute='some' is unknown"),
        ({"execution_order": "random"}, "execution_order='random' is unknown; choose one of ready, graph"),
        ({"execution_order": "graph", "mode": "pynative"}, "without a graph there is no order to keep"),
        ({"graph_kernel": True, "mode": "pynative"}, "graph_kernel=True and mode='pynative' disagree"),
        ({"profiled_steps": 9, "steps": 10}, "profiled_steps=9 and steps=10 disagree: 2 steps of warm-up come first"),
        ({"data": "records:"}, "data='records:' is unknown; use 'text', 'text:FILE', 'records:FILE'"),
        ({"data": "records:../x.txt"}, "leaves the project"),
        ({"data": "records:x.txt", "samples": 4}, "prompts are cut from running text; set samples=0"),
        ({"data": "records:x.txt", "shuffle_sentences": True}, "a record may be a single sentence"),
        ({"bad_records": "skip"}, "bad_records='skip' and data='text' disagree: it has no records"),
        ({"masking": 0.2}, "masking=0.2 hides too much to learn from; use at most 0.15"),
        ({"masking": -0.1}, "masking must be a finite number of at least 0"),
        ({"data": "text:src/model.py", "shuffle_sentences": True}, "it has no sentences, its order is its meaning"),
        ({"data": "markov", "shuffle_sentences": True}, "data='markov' disagree: it has no sentences"),
        ({"temperature": -1.0}, "temperature must be a finite number of at least 0, not -1.0"),
        ({"top_k": -1}, "top_k must be a whole number of at least 0, not -1"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, not 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1"),
        ({"sample_every": 5}, "sample_every=5 and samples=0 disagree: nothing to sample"),
        ({"sample_every": 5, "samples": 1, "sample_tokens": 2}, "distinct_3 needs three tokens"),
        ({"sample_every": 50, "samples": 1}, "sample_every=50 and steps=20 disagree: it would never sample"),
        ({"quick_sequences": 8}, "quick_sequences=8, eval_every=0 and eval_sequences=128 disagree"),
        ({"quick_sequences": 128, "eval_every": 5}, "during training fewer are evaluated than at the end"),
        ({"checkpoints": Checkpoints(every=21)}, "checkpoints.every=21 and steps=20 disagree"),
        ({"checkpoints": Checkpoints(every=1, best="perplexity"), "eval_sequences": 0}, "nothing says which is best"),
        ({"checkpoints": Checkpoints(best="perplexity")}, "nothing says which is best"),
        ({"checkpoints": Checkpoints(every=1), "engine": "semi_auto", "eval_sequences": 0}, "only engine='explicit'"),
        ({"checkpoints": {"every": 1, "often": 2}}, "is no Checkpoints"),
        ({"guard": Guard("stop"), "engine": "semi_auto", "eval_sequences": 0}, "looks before it updates"),
        ({"guard": {"policy": "warn"}}, "guard.policy='warn' is unknown"),
        ({"trace_every": 21}, "trace_every=21 and steps=20 disagree: it would never trace"),
        ({"trace_every": 1, "engine": "semi_auto", "eval_sequences": 0}, "can look at its layers"),
        ({"data": "mindrecord:"}, "is unknown; use 'text', .*'mindrecord:FOLDER'"),
        ({"data": "mindrecord:../x"}, "leaves the project"),
        ({"data": "mindrecord:x", "masking": 0.1}, "masking=0.1 and .* disagree: its rows are as they were converted"),
        ({"data": "mindrecord:x", "shuffle_sentences": True}, "shuffle_sentences=True and .* disagree"),
        ({"data": "mindrecord:x", "data_processes": True}, "MindSpore reads MindRecord by threads alone"),
        ({"data_prefetch": 0}, "data_prefetch must be a whole number of at least 1"),
        ({"data_workers": 0}, "data_workers must be a whole number of at least 1"),
        ({"compile_cache": True, "mode": "pynative"}, "compile_cache=True and mode='pynative' disagree"),
        ({"graph_kernel": "yes"}, "graph_kernel must be True or False, not 'yes'"),
        ({"fused_reduction": 1}, "fused_reduction must be True or False, not 1"),
        ({"fused_reduction": False}, "fused_reduction=False and layout.dp=1 disagree"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number"),
        ({"learning_rate": -1.0}, "learning_rate must be a finite number of at least 0, not -1.0"),
        ({"clip_norm": 0.0}, "clip_norm=0 would erase every gradient"),
        ({"warmup_steps": 30, "steps": 20}, "warmup_steps=30 and steps=20 disagree"),
        ({"eval_every": 5, "eval_sequences": 0}, "eval_every=5 and eval_sequences=0 disagree"),
        ({"micro_batches": 4}, "micro_batches=4 and layout.pp=1 disagree"),
        ({"batch": 6, "layout": Layout(dp=4)}, r"batch=6 is not divisible by 4 \(layout.dp=4 ×"),
        ({"batch": 8, "accumulation": 3}, "use a multiple of 3"),
        ({"batch": 8, "micro_batches": 3, "layout": Layout(pp=2)}, "not divisible by 3"),
        ({"model": "nano", "layout": Layout(pp=4)}, "its 2 layers are not divisible by 4; nearest that works: 2"),
        ({"model": "deep", "layout": Layout(pp=3)}, "its 8 layers are not divisible by 3; nearest that works: 2 or 4"),
        (
            {"pipeline_schedule": "interleaved", "chunks": 3, "layout": Layout(pp=2)},
            r"layout.pp=2 × chunks=3 and model='tiny' disagree: its 4 layers are not divisible by 6; nearest .*: 4",
        ),
        ({"layout": Layout(tp=3)}, "its heads of 4 is not divisible; nearest that works: 2 or 4"),
        ({"model": "7b", "layout": Layout(tp=64)}, "its heads of 32 is not divisible; nearest that works: 32"),
        ({"pipeline_schedule": "interleaved", "layout": Layout(pp=2)}, "at least two chunks a stage"),
        ({"chunks": 2, "layout": Layout(pp=2)}, "pipeline_schedule='1f1b' and chunks=2 disagree"),
        ({"pipeline_schedule": "gpipe"}, "pipeline_schedule='gpipe' and layout.pp=1 disagree: there is no pipeline"),
        ({"pipeline_schedule": "dualpipe"}, "pipeline_schedule='dualpipe' is unknown"),
        ({"engine": "auto"}, "engine='auto' is unknown; choose one of explicit, semi_auto"),
        ({"engine": "semi_auto"}, "only trains: set eval_sequences=0"),
        ({"engine": "semi_auto", "model": "my.module:model"}, "it knows the decoder's operators only"),
        ({"engine": "semi_auto", "mode": "pynative", "eval_sequences": 0}, "it works on graphs"),
        ({"engine": "semi_auto", "model": "tiny-tied", "layout": Layout(pp=2)}, "can't cut a tied embedding"),
        (
            {"engine": "semi_auto", "pipeline_schedule": "gpipe", "layout": Layout(pp=2)},
            "has no pipeline_schedule='gpipe'; use 1f1b or interleaved",
        ),
        (
            {"engine": "semi_auto", "optimizer": "sgd"},
            "in float32 or bfloat16, not by optimizer='sgd'",
        ),
        ({"engine": "semi_auto", "precision": "float16"}, "in precision='float16'"),
        ({"strategy": "strategies.json"}, "nothing would load it"),
        ({"strategy": "../strategies.json", "engine": "semi_auto"}, "leaves the project"),
        ({"chunks": 0}, "chunks must be a whole number of at least 1, not 0"),
        ({"layout": {"dp": 2, "cp": 2}}, "is no Layout"),
        ({"layout": 2}, "layout must be Layout"),
    ],
)
def test_refuses_what_cannot_work(fields, message):
    with pytest.raises(ScenarioError, match=message) as caught:
        Scenario.from_dict(fields)
    assert len(str(caught.value).splitlines()) <= 2

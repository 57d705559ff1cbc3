"""``harness plan`` as people type it."""

import json

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.errors import PlanError


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)


def test_a_plan_shows_memory_time_and_traffic_and_says_that_it_is_a_model():
    text = run("fixtures.scenarios:SEED_13B", "--profile", "ascend-910b").output
    for part in ("activations", "pipeline bubble", "optimizer sharding", "a model, not a measurement"):
        assert part in text


def test_json_holds_every_figure():
    found = json.loads(run("fixtures.scenarios:SEED_13B", "--profile", "ascend-910b", "--json").output)
    assert found["kind"] == "model, not measurement"
    (plan,) = found["plans"]
    assert len(plan["memory"]) == 4
    assert plan["step_time"] > plan["compute"] > 0
    assert {each["purpose"] for each in plan["traffic"]} >= {"tensor parallel", "pipeline", "gradients"}


def test_a_search_lists_the_best_layouts():
    text = run("fixtures.scenarios:SEED_13B", "--profile", "ascend-910b", "--search", "32", "--top", "3").output
    assert text.count("dp ") == 3


def test_a_layout_that_does_not_fit_says_what_is_missing_and_what_fits(tmp_path, monkeypatch):
    (tmp_path / "large.py").write_text(
        "from harness import Layout, Scenario\n"
        "ALL = Scenario(model='13b', batch=64, sequence=2048, layout=Layout(dp=8), eval_sequences=0)\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError, match=r"needs \d+\.\d GiB of 64 and lacks \d+\.\d; what fits .*: dp \d × tp \d"):
        run("large:ALL", "--profile", "ascend-910b")

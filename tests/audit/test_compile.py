"""Real compiling, of the smallest model, through MindSpore's front end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Layout, Scenario
from harness.audit import stand_in
from harness.audit.compile import audit, representatives
from harness.audit.stand_in import SetupError
from harness.errors import LaunchError, ScenarioError
from harness.launch.code import Code

ROOT = Path(__file__).parents[2]
SMALL = Scenario(
    model="decoder:layers=1,width=8,heads=2,feed_forward=8",
    steps=1,
    batch=2,
    sequence=4,
    eval_sequences=0,
    engine="semi_auto",
    layout=Layout(tp=2),
)


@pytest.fixture(scope="module", autouse=True)
def front_end(tmp_path_factory):
    """Set up anew, in a cache of the tests' own."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed; the front end can't be set up")
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    assert "run `harness audit --setup`" in stand_in.missing()
    stand_in.set_up()
    assert stand_in.missing() == ""
    yield
    os.environ.pop("XDG_CACHE_HOME")
    if before:
        os.environ["XDG_CACHE_HOME"] = before


def compiled(scenario, folder, root=ROOT):
    run, graphs = audit(scenario, "gpu", Code(root), folder)
    return run.metrics, graphs


def test_strategies_are_saved_and_loaded(tmp_path):
    """A searched layout compiled from its own saved strategies communicates the same."""
    searched = SMALL.replace(engine="sharding_propagation")
    first, graphs = compiled(searched, tmp_path / "first")
    assert graphs[0].parameters["blocks.0.attention.query.weight"] == (8, 4)
    assert (tmp_path / "first" / "audit.json").exists()
    (tmp_path / "saved.json").write_bytes((tmp_path / "first" / "strategies.json").read_bytes())
    again, _ = compiled(searched.replace(strategy="saved.json"), tmp_path / "second", tmp_path)
    assert again == first


def test_what_the_compiler_refuses_is_told(tmp_path):
    with pytest.raises(LaunchError, match=r"rank 0 can't be compiled: .*\nits log: rank-0.log"):
        compiled(SMALL.replace(strategy="nowhere.json"), tmp_path / "audit")


def test_what_has_no_graph_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="engine='explicit' has no graph to audit"):
        compiled(Scenario(), tmp_path / "audit")
    with pytest.raises(ScenarioError, match="target 'tpu' is unknown; choose one of gpu, ascend"):
        audit(SMALL, "tpu", Code(ROOT), tmp_path / "audit")
    with pytest.raises(SetupError, match="CANN is not installed"):
        audit(SMALL, "ascend", Code(ROOT), tmp_path / "audit")
    with pytest.raises(ScenarioError, match="rank 2 is outside a layout of 2 ranks"):
        audit(SMALL, "gpu", Code(ROOT), tmp_path / "audit", ranks=[2])


def test_one_rank_of_each_stage_stands_for_the_others():
    assert representatives(Layout(dp=2, tp=2, pp=2)) == [0, 4]


def test_a_missing_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="gcc is not installed"):
        stand_in.set_up()


def test_the_command_line_shows_every_operator_with_its_reason(tmp_path):
    (tmp_path / "mine.py").write_text(f"from harness import Checkpoints, Guard, Layout, Scenario\nSMALL = {SMALL!r}\n")
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli", "audit", "mine:SMALL", "--parameters"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "tensor parallel" in done.stdout
    assert "global norm" in done.stdout
    assert "8 × 4" in done.stdout
    assert "unexplained" not in done.stdout

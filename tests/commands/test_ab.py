"""``harness ab``: one change, in pairs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.scenarios import SHORT, STAGES
from harness import Layout
from harness.commands.ab import FEWEST_STEPS, changed, parse_changes, shortened
from harness.errors import ScenarioError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("recompute=full", "recompute", "full"),
        ("batch=16", "batch", 16),
        ("clip_norm=null", "clip_norm", None),
        ("graph_kernel=true", "graph_kernel", True),
        ("data=text:a=b", "data", "text:a=b"),
    ],
)
def test_values_are_what_they_look_like(text, option, value):
    assert parse_changes([text], together=False) == {option: value}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "nothing is changed"),
        (["recompute"], "--set 'recompute' changes nothing; write it as option=value"),
        (["=full"], "changes nothing"),
        (["recompute=full", "batch=16"], r"2 changes at once \(recompute, batch\) can't be told apart: .* --together"),
    ],
)
def test_what_is_no_single_change_is_refused(texts, message):
    with pytest.raises(ScenarioError, match=message):
        parse_changes(texts, together=False)


def test_two_at_once_where_asked_for():
    changes = parse_changes(["layout.pp=2", "micro_batches=8"], together=True)
    found = changed(STAGES, changes)
    assert (found.layout, found.micro_batches) == (Layout(pp=2), 8)
    assert found.replace(layout=Layout(), micro_batches=1) == STAGES


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recompute": "none"}, "recompute: the scenario has this value already"),
        ({"recomptue": "full"}, "no field 'recomptue'; did you mean 'recompute'"),
        ({"layout.dq": 2}, "is no Layout"),
        ({"batch": "many"}, "batch must be a whole number"),
    ],
)
def test_a_change_that_is_none_is_refused(changes, message):
    with pytest.raises(ScenarioError, match=message):
        changed(SHORT, changes)


def test_a_share_of_the_data_says_how_many_steps():
    tenth, whole = (shortened(SHORT, share, ROOT).steps for share in (0.1, 1.0))
    assert whole == pytest.approx(10 * tenth, abs=10)
    assert shortened(SHORT, 1e-6, ROOT).steps == FEWEST_STEPS
    with pytest.raises(ScenarioError, match="--share 2 is no share"):
        shortened(SHORT, 2.0, ROOT)


def test_real_runs_side_by_side(tmp_path):
    """Half the rate: the same time and memory, another loss, which starts out equal."""
    (tmp_path / "mine.py").write_text(
        "from harness import Scenario\nSMALL = Scenario(model='nano', batch=4, sequence=32, eval_sequences=0)\n"
    )
    command = [sys.executable, "-m", "harness.cli", "ab", "mine:SMALL", "--set", "learning_rate=0.01"]
    done = subprocess.run(
        [*command, "--pairs", "2", "--share", "0.0001"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"learning_rate: 0.001 → 0.01, 2 pairs of {FEWEST_STEPS} steps" in done.stdout
    assert re.search(r"peak_memory +(\d+ MiB) +\1 +1\.0000 .* equal", done.stdout), done.stdout
    assert re.search(r"loss at the end .* better", done.stdout), done.stdout
    assert re.search(r"\n +1 +([\d.]+) +\1 +\+0\.00e\+00", done.stdout), done.stdout

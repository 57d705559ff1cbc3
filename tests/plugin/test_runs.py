"""Real runs through the trainer fixture."""

import pytest

from tests.plugin.sessions import approve, results, run, suite

TRAINED = """
import pytest
from harness import Scenario, hardware

SCENARIO = Scenario(model="nano", steps=4, batch=4, sequence=16, eval_sequences=8)

@hardware("cpu")
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_trains(trainer, gate, name):
    gate.check(trainer.run(SCENARIO), only=["loss", "validation_perplexity"])
"""


def test_workers_share_one_real_run(project):
    suite(project, TRAINED)
    run(project, "-n", "4")
    folders = [path for path in (project.path / ".harness/latest/runs").iterdir() if path.is_dir()]
    assert len(folders) == 1
    assert len(results(project).runs) == 1
    approve(project)
    serial = run(project, "-p", "no:xdist")
    serial.assert_outcomes(passed=4)
    assert len([path for path in (project.path / ".harness/latest/runs").iterdir() if path.is_dir()]) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("data='text:none.txt'", "*data='text:none.txt' can't be read: No such file or directory*"),
        ("layout=Layout(tp=3)", "*layout.tp=3 and model*"),
        ("batch=64, layout=Layout(dp=64)", "*the scenario needs 64 ranks, cpu offers*mark the test with @cards(64)*"),
        ("model='missing.module:model'", "*error: model='missing.module:model' can't be loaded: No module named*"),
        ("steps=0", "test_suite.py:4: error: steps must be a whole number of at least 1, not 0"),
    ],
)
def test_bad_input_is_named(project, fields, message):
    suite(
        project,
        "from harness import Layout, Scenario, hardware\n\n@hardware('cpu')\n"
        f"def test_x(trainer): trainer.run(Scenario({fields}))\n",
    )
    found = run(project)
    found.stdout.fnmatch_lines([message])
    assert found.ret == 1
    assert "harness/session.py" not in found.stdout.str()


def test_a_run_that_was_too_slow_may_be_given_more_time(project):
    suite(
        project,
        "import pytest\nfrom harness import Scenario, hardware\nfrom harness.errors import LaunchError\n\n"
        "@hardware('cpu')\ndef test_x(trainer):\n"
        "    scenario = Scenario(model='nano', steps=3, batch=2, sequence=16, eval_sequences=0)\n"
        "    for _ in range(2):\n"
        "        with pytest.raises(LaunchError, match='the deadline of 0.5 s passed'):\n"
        "            trainer.run(scenario, deadline=0.5)\n"
        "    assert len(trainer.run(scenario).curve('loss')) == 3\n",
    )
    run(project).assert_outcomes(passed=1)


def test_a_model_of_the_users_own_is_trained(project):
    (project.path / "own.py").write_text(
        "from harness.models import ModelConfig\nfrom harness.trainer.model import Decoder\n"
        "def model(scenario):\n"
        "    config = ModelConfig(layers=1, width=8, heads=2, feed_forward=8)\n"
        "    return Decoder(config, scenario.sequence, scenario.seed)\n"
    )
    suite(
        project,
        "from harness import Scenario, hardware\n\n@hardware('cpu')\ndef test_x(trainer):\n"
        "    run = trainer.run(Scenario(model='own:model', steps=3, batch=2, sequence=16, eval_sequences=4))\n"
        "    assert run['parameters'] == 2 * 256 * 8 + 4 * 64 + 3 * 64 + 2 * 8 + 8\n",
    )
    run(project).assert_outcomes(passed=1)


def test_a_planted_fault_without_effect_is_an_error_of_the_test(project):
    """It would pass for a healthy run, and the test that waits for it could not fail."""
    body = "from harness import Scenario, hardware\n\n@hardware('cpu')\ndef test_x(trainer):\n"
    suite(project, body + "    trainer.run(Scenario(steps=5), fault='dropped_moments')\n")
    found = run(project)
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        ["*error: fault 'dropped_moments' has no effect in this run; it would pass for a healthy*"]
    )


COMMAND = """
from harness import Scenario, hardware

COMMAND = Scenario.command(["python", "train.py"])

@hardware("cpu")
def test_is_gated(trainer, gate):
    gate.check(trainer.run(COMMAND))

@hardware("cpu")
def test_is_not_planted(trainer):
    trainer.run(COMMAND, fault="nan=3")
"""


def test_a_command_is_run_once_gated_and_takes_no_fault(project):
    script = "import json\nfor step in range(1, 4):\n    print(json.dumps({'step': step, 'loss': 5.0 - step}))\n"
    (project.path / "train.py").write_text(script)
    suite(project, COMMAND)
    first = run(project)
    first.assert_outcomes(failed=2)
    first.stdout.fnmatch_lines(["*error: fault, until and resume are for scenarios of this trainer, not for a command"])
    assert results(project).tests[0].last.verdicts[0].step == 3
    approve(project)
    run(project, "-k", "gated").assert_outcomes(passed=1, deselected=1)
    planted = run(project, "-k", "gated", "--plant", "nan=2")
    planted.assert_outcomes(passed=1, deselected=1)
    planted.stdout.fnmatch_lines(["nan=2.0 was planted into 0 of 1 runs, where it has an effect"])

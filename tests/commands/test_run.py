"""A finished training, judged."""

import pytest

from tests.processes import module

LOSSES = [5.0 - 0.05 * step for step in range(40)]


def log(folder, losses=LOSSES, left_out=(), name="train.log"):
    lines = [
        f"{{ Epoch:[  1/  1], step:[{step:5d}/   40], loss: {loss:.4f}, per_step_time: 100ms, global_norm: [1.2] }}\n"
        for step, loss in enumerate(losses, start=1)
        if step not in left_out
    ]
    (folder / name).write_text("".join(lines))


def judged(folder, *options, name="train.log"):
    return module(folder, "harness.cli", "run", "--from-log", name, "--label", "ours", "--hardware", "cpu", *options)


@pytest.fixture
def approved(tmp_path):
    """A project in which a training was approved."""
    log(tmp_path)
    first = judged(tmp_path)
    assert first.returncode == 4
    assert "run.loss @40" in first.stdout
    done = module(tmp_path, "harness.cli", "baseline", "approve", "--reason", "first", "--by", "me")
    assert "approved baselines/cpu/logs/ours.json" in done.stdout
    return tmp_path


def test_the_same_again_passes_and_leaves_a_session(approved):
    assert judged(approved).returncode == 0
    assert (approved / ".harness/latest/report.html").exists()
    history = module(approved, "harness.cli", "history")
    assert "logs::ours" in history.stdout or "ours[cpu]" in history.stdout


def test_a_curve_that_moved_is_a_regression_at_its_step(approved):
    log(approved, [*LOSSES[:29], LOSSES[29] + 0.5, *LOSSES[30:]], left_out=[7])
    found = judged(approved)
    assert found.returncode == 5  # the lost line of every curve
    assert "REGRESSED            run.loss: 3.55 → 4.05 nat (+14.08 %)" in found.stdout
    assert "first at step 30" in found.stdout
    (approved / "pyproject.toml").write_text("[tool.harness.policy.numeric]\nmissing_steps = 1\n")
    assert judged(approved).returncode == 1


def test_what_could_not_be_read_is_told(approved):
    with (approved / "train.log").open("a") as file:
        file.write("{ step:[   41/   40], los\n")
    found = judged(approved)
    assert "1 of 41 lines speak of a step and can't be read: line 41: no loss" in found.stdout
    assert found.returncode == 0


def test_its_baseline_is_no_orphan(approved):
    (approved / "suites").mkdir()
    assert "logs" not in module(approved, "harness.cli", "baseline", "prune").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "../x"], "is not a plain file name"),
        (["--hardware", "tpu"], "hardware 'tpu' is unknown; choose from cpu, gpu, ascend"),
        (["--from-log", "nothing"], "nothing can't be read: No such file"),
    ],
)
def test_bad_input_is_refused(tmp_path, options, message):
    log(tmp_path)
    found = judged(tmp_path, *options)
    assert found.returncode == 2
    assert message in found.stderr
    assert not (tmp_path / ".harness").exists()

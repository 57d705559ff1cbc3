import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.errors import ResultsError
from tests.gate.builders import make_run


def log(path, losses, first=1, **more):
    fields = "".join(f", {name}: {value}" for name, value in more.items())
    steps = enumerate(losses, start=first)
    path.write_text("".join(f"{{ step:[{step}/1000], loss: {loss}{fields} }}\n" for step, loss in steps))
    return path


def compared(*arguments):
    done = CliRunner().invoke(app, ["compare", *map(str, arguments)], catch_exceptions=False)
    return done.exit_code, " ".join(done.output.split())


LOSSES = [10.0 - 0.01 * step for step in range(200)]


def test_equal_logs_agree(tmp_path):
    status, text = compared(log(tmp_path / "a", LOSSES, lr="1e-4"), log(tmp_path / "b", LOSSES, lr="1e-4"))
    assert status == 0
    assert "loss PASS 200 0 0 0" in text
    assert "learning_rate PASS 200" in text


def test_the_first_step_that_deviates_is_named(tmp_path):
    other = [*LOSSES[:120], *(loss * 1.01 for loss in LOSSES[120:])]
    status, text = compared(log(tmp_path / "a", LOSSES, first=1001), log(tmp_path / "b", other, first=1001))
    assert status == 1
    assert "loss REGRESSED 200 0 0 1121 8.8 8.888 0.01" in text
    assert "80 of 200 steps deviate, first at step 1121" in text


@pytest.mark.parametrize(("deviating", "status"), [(2, 0), (3, 1), (179, 1)])
def test_steps_that_may_deviate_are_counted_as_whole_numbers(tmp_path, deviating, status):
    other = [loss * (1.1 if step < deviating else 1.0) for step, loss in enumerate(LOSSES)]
    assert compared(log(tmp_path / "a", LOSSES), log(tmp_path / "b", other), "--allowed", 2)[0] == status


def test_the_tolerance_is_ones_own(tmp_path):
    one, other = log(tmp_path / "a", LOSSES), log(tmp_path / "b", [loss * 1.004 for loss in LOSSES])
    assert compared(one, other)[0] == 1
    assert compared(one, other, "--relative", 0.005)[0] == 0
    assert compared(one, other, "--relative", 0.003)[0] == 1


def test_one_that_ended_earlier_is_not_said_to_agree(tmp_path):
    one, other = log(tmp_path / "a", LOSSES), log(tmp_path / "b", LOSSES[:50])
    status, text = compared(one, other)
    assert status == 3
    assert "loss PASS 50 150 0" in text
    assert "the first ends with step 200, the second with step 50" in text
    assert compared(one, other, "--until", 50)[0] == 0


def test_the_last_step_that_is_compared_is_compared(tmp_path):
    other = [*LOSSES[:49], 1.0, *LOSSES[50:]]
    one, other = log(tmp_path / "a", LOSSES), log(tmp_path / "b", other)
    assert compared(one, other, "--until", 49)[0] == 0
    assert compared(one, other, "--until", 50)[0] == 1


def test_no_number_is_invalid(tmp_path):
    status, text = compared(log(tmp_path / "a", LOSSES), log(tmp_path / "b", [*LOSSES[:99], "nan", *LOSSES[100:]]))
    assert status == 5
    assert "loss INVALID" in text
    assert "non-finite (nan) at step 100" in text


def test_a_run_of_ours_compares_with_a_log(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    run = make_run(curves={"loss": LOSSES, "perplexity_curve": [3.0]})
    (folder / "run.json").write_text(run.model_dump_json())
    assert compared(folder, log(tmp_path / "b", LOSSES))[0] == 0
    assert compared(folder / "run.json", log(tmp_path / "c", [*LOSSES[:-1], 1.0]))[0] == 1


def test_nothing_in_common_is_refused(tmp_path):
    one = log(tmp_path / "a", LOSSES)
    other = log(tmp_path / "b", LOSSES, first=500)
    with pytest.raises(ResultsError, match="nothing to compare: loss and loss have no curve with a step in common"):
        compared(one, other)
    with pytest.raises(ResultsError, match=r"run\.json: No such file or directory; name a run's folder, or a log"):
        compared(one, tmp_path)

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ResultsError
from harness.readers.log import gather, number, parse, read

STATIC = (
    "2026-01-01 [INFO] { Epoch:[  1/  2], step:[   12/ 6500], loss: 10.628032, per_step_time: 9854ms, lr: 1e-05, "
    "overflow cond: False, loss_scale: 1.0, global_norm: [4.4], train_throughput_per_npu: 170.123T"
)
PYNATIVE = (
    "{ step:[   12/ 1000], consumed_samples: 96, global_batch_size: 8, loss:   9.123456, per_step_time:    812ms, "
    "lr: 1.000000e-04, grad_norm:   1.234567, throughput:  12.34T }"
)


def line(step, loss, of=1000, **more):
    fields = "".join(f", {name}: {value}" for name, value in more.items())
    return f"{{ step:[{step:5}/{of:5}], loss: {loss}{fields} }}"


def test_a_line_of_a_static_graph():
    step, values = parse(STATIC)
    assert step == 12
    assert values["loss"] == 10.628032
    assert values["step_time"] == pytest.approx(9.854)
    assert (values["learning_rate"], values["grad_norm"], values["loss_scale"]) == (1e-05, 4.4, 1.0)
    assert values["achieved_flops"] == pytest.approx(170.123e12)


def test_steps_are_counted_over_epochs():
    assert parse(STATIC.replace("Epoch:[  1/  2]", "Epoch:[  2/  2]"))[0] == 6512


def test_a_line_of_the_pynative_trainer():
    step, values = parse(PYNATIVE)
    assert (step, values["loss"], values["grad_norm"], values["consumed_samples"]) == (12, 9.123456, 1.234567, 96)
    assert values["step_time"] == pytest.approx(0.812)


def test_a_stage_that_has_no_loss_says_so_and_is_no_fault():
    text = "N/A (non-last PP stage, refer to last stage for real loss)"
    assert parse(line(3, text, lr="1e-4", grad_norm="2.5")) == (3, {"learning_rate": 1e-4, "grad_norm": 2.5})


def test_a_norm_that_is_never_computed_is_no_curve():
    found = gather([line(step, 3.0, grad_norm="NaN") for step in range(1, 5)])
    assert set(found.curves) == {"loss"}
    mixed = gather([line(1, 3.0, grad_norm="2.0"), line(2, 3.0, grad_norm="nan")])
    assert math.isnan(mixed.curves["grad_norm"][2])


def test_further_losses_keep_their_names():
    _, values = parse(line(1, 3.0, lm_loss="2.5", load_balancing_loss="-0.1", mtp_1_loss="[5.0/5.1]"))
    assert (values["lm_loss"], values["load_balancing_loss"], values["mtp_1_loss"]) == (2.5, -0.1, 5.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-05", 1e-5), ("-2.5", -2.5), ("inf", math.inf), ("-inf", -math.inf), ("9854ms", 9.854), ("3s", 3.0)],
)
def test_numbers(text, value):
    assert number(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["[4.4]", "[4.4/4.5]", "4.4", "[ 4.4 ]"])
def test_brackets_hold_this_steps_value_first(text):
    assert number(text) == 4.4


@pytest.mark.parametrize("text", ["False", "N/A", "", "[", "1.2.3", "0x10", "1e", "--1"])
def test_what_is_no_number(text):
    assert number(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 10**6))
def test_json_lines_come_back(loss, step):
    assert parse(json.dumps({"step": step, "loss": loss, "note": "text", "flag": True})) == (step, {"loss": loss})


def test_a_lost_line_shifts_nothing():
    steps = [line(step, 10.0 - step) for step in range(1, 9)]
    whole, lossy = gather(steps), gather(steps[:3] + steps[4:])
    assert 4 not in lossy.curves["loss"]
    assert all(whole.curves["loss"][step] == value for step, value in lossy.curves["loss"].items())


def test_a_restart_counts_later_and_is_told():
    found = gather([*(line(s, 3.0) for s in range(1, 11)), *(line(s, 2.5) for s in range(8, 13))])
    assert [found.curves["loss"][s] for s in (7, 8, 10, 12)] == [3.0, 2.5, 2.5, 2.5]
    (note,) = found.notes()
    assert note.startswith("3 steps between 8 and 10 came more than once")


def test_ranks_that_say_the_same_are_no_restart():
    found = gather([line(step, 3.0) for step in (1, 1, 2, 1, 2, 2)])
    assert found.notes() == []


def test_what_cannot_be_read_is_counted_and_shown():
    found = gather([line(1, 3.0), "{ step:[ 2/ 9], los", '{"step": 3, "loss"', '{"step": "x", "loss": 1.0}', "other"])
    assert (found.lines, found.unread, list(found.curves["loss"])) == (5, 3, [1])
    (note,) = found.notes()
    assert note.startswith("3 of 5 lines speak of a step and can't be read: line 2: no loss in '{ step:[ 2/ 9], los'")


@given(st.lists(st.text(max_size=60), max_size=20))
def test_whatever_a_log_holds_it_is_read(texts):
    found = gather(texts)
    assert found.lines == len(texts)


@given(st.text(st.sampled_from('{}[]:,/ "steploss0123456789.eNA()-'), max_size=80))
def test_whatever_looks_like_a_step_is_read(text):
    gather([text, '{"' + text, "step:[1/2]" + text])


def test_a_log_without_a_step_is_refused(tmp_path):
    path = tmp_path / "other.log"
    path.write_text("hello\n")
    with pytest.raises(ResultsError, match=r"other\.log: none of 1 lines is a step of a MindFormers log"):
        read(path)
    with pytest.raises(ResultsError, match=r"none\.log can't be read: No such file"):
        read(tmp_path / "none.log")


def numbered(*steps, loss=1.0):
    return [line(step, loss + step / 100) for step in steps]


class TestRestarts:
    """A job that began again."""

    def test_an_attempt_that_was_given_up_counts_no_more(self):
        found = gather([*numbered(*range(1, 11)), *numbered(1, 2, 3)])
        assert list(found.curves["loss"]) == [1, 2, 3]
        assert found.notes() == [
            "it began again 1 times, at step 1",
            "7 steps that it came to before it last began again are left out",
        ]

    def test_from_a_checkpoint_the_steps_before_it_stay(self):
        found = gather([*numbered(*range(1, 11)), *numbered(*range(6, 21), loss=2.0)])
        assert list(found.curves["loss"]) == list(range(1, 21))
        assert found.curves["loss"][6] == pytest.approx(2.06)
        assert (found.restarts, found.abandoned) == ([6], 0)

    @given(st.integers(1, 3), st.integers(5, 30))
    def test_ranks_that_write_in_turn_begin_nothing_again(self, behind, steps):
        both = [
            line for step in range(1, steps + 1) for line in numbered(*([step - behind] if step > behind else []), step)
        ]
        found = gather(both)
        assert (found.restarts, found.abandoned, len(found.curves["loss"])) == ([], 0, steps)


@pytest.mark.parametrize("text", ["null", '"NaN"', '"nan"', "NaN", '"-Infinity"', "1" + 400 * "0"])
def test_what_json_writes_for_no_number_is_none(text):
    step, values = parse(f'{{"step": 5, "loss": {text}}}')
    assert step == 5
    assert not math.isfinite(values["loss"])


def test_a_norm_that_is_never_a_number_is_left_out_of_kits_logs_alone():
    theirs = gather([line(step, 1.0, grad_norm="nan") for step in (1, 2)])
    assert "grad_norm" not in theirs.curves
    assert "grad_norm is no number in any step" in theirs.notes()[0]
    ours = gather([json.dumps({"step": step, "grad_norm": math.nan}) for step in (1, 2)])
    assert len(ours.curves["grad_norm"]) == 2


def test_a_rate_of_tokens_is_none_of_operations():
    assert parse('{"step": 1, "throughput": 51234.0}')[1] == {"throughput": 51234.0}
    assert parse(PYNATIVE)[1]["achieved_flops"] == pytest.approx(12.34e12)


@pytest.mark.parametrize("text", [f"step:[ {'9' * 5000}/ 10], loss: 1.0", f'{{"step": {"9" * 50}, "loss": 1}}'])
def test_steps_beyond_all_counting_are_none(text):
    assert not isinstance(parse(text), tuple)


def test_a_long_word_takes_no_time():
    began = time.perf_counter()
    parse("step:[ 1/ 10], " + "w" * 60_000 + " loss: 1.0")
    assert time.perf_counter() - began < 5

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.report.evaluation import score_table
from harness.tasks.summary import scores, standard_error
from tests.tasks.test_log import SETTING, result


def of(checkpoint):
    return SETTING.model_copy(update={"checkpoint": checkpoint})


def answers(checkpoint, *right):
    return [result(str(i), setting=of(checkpoint), correct=correct) for i, correct in enumerate(right)]


def shown(results):
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(score_table(scores(results)))
    return console.export_text()


def test_accuracy_and_its_error():
    (score,) = scores(answers("c", True, False, True, True)).values()
    assert (score.name, score.value, score.samples) == ("accuracy", 0.75, 4)
    assert score.error == pytest.approx(math.sqrt(0.75 * 0.25 / 3))


@given(st.lists(st.booleans(), min_size=2, max_size=50))
def test_the_error_is_that_of_a_mean(right):
    share = sum(right) / len(right)
    variance = sum((value - share) ** 2 for value in right) / (len(right) - 1)
    assert standard_error(share, len(right)) == pytest.approx(math.sqrt(variance / len(right)))


def test_a_single_sample_has_no_error():
    assert scores(answers("c", True))[of("c")].error is None


def test_of_a_sample_that_was_done_twice_the_last_counts():
    assert scores([*answers("c", False), *answers("c", True)])[of("c")].value == 1.0


def test_what_is_written_is_looked_at_for_variety():
    written = [result(str(i), correct=None, output=text, truncated=i == 0) for i, text in enumerate(["abab", "ab"])]
    (score,) = scores(written).values()
    assert (score.name, score.value, score.truncated) == ("distinct_2", 2 / 4, 0.5)
    assert math.isnan(scores([result("a", correct=None, output="")])[SETTING].value)


def test_a_table_says_which_differ():
    results = [*answers("first", *[True, False] * 20), *answers("better", *[True] * 40)]
    text = shown([*results, *answers("alike", *[True, False] * 19, True, True)])
    (row,) = [line for line in text.splitlines() if "zero-shot" in line]
    assert "t v1, zero-shot, greedy" in row
    assert "0.500 ± 0.080" in row
    assert "1.000 ± 0.000 ↑" in row
    assert row.rstrip().endswith("0.525 ± 0.080")
    worse = shown([*answers("better", *[True] * 40), *results[:40]])
    assert "0.500 ± 0.080 ↓" in worse


def test_a_checkpoint_that_was_not_asked_is_no_zero():
    other = [result("0", setting=of("b").model_copy(update={"shots": 2, "temperature": 0.7, "top_k": 5}))]
    text = shown([*answers("a", True, True), *other])
    assert "t v1, 2 shots, temperature 0.7, seed 0, top_k 5" in text
    assert text.count("–") == 2


def test_what_can_not_be_compared_has_no_arrow():
    alone = shown([*answers("a", False), *answers("b", True)])
    assert "1.000" in alone
    pairs = (("a", "aaaa"), ("b", "abcd"))
    variety = shown([result("0", setting=of(name), correct=None, output=text) for name, text in pairs])
    half = shown([*answers("a", *[False] * 10), *answers("b", True, True)])
    assert "1.000 ± 0.000 (2 samples)" in half
    assert " 10 " in half
    for text in (alone, variety, half):
        assert "↑" not in text


def test_rows_of_one_name_are_told_apart():
    edited = [result("0", setting=of("a").model_copy(update={"file": "another-file"}))]
    text = shown([*answers("a", True, True), *edited])
    assert "greedy, file f" in text
    assert "greedy, file another-" in text

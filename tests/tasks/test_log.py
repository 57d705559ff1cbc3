import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ResultsError
from harness.tasks.log import Log, Result, Setting, missing, read

SETTING = Setting(checkpoint="c", task="t", version=1, file="f", shots=0, temperature=0.0, top_k=0, top_p=1.0, seed=0)


def result(sample, **changes):
    return Result(**{"setting": SETTING, "kind": "cloze", "sample": sample, "correct": True, "nll": (0.5,), **changes})


def test_ten_samples_of_which_two_failed(tmp_path):
    """Killed with 3 and 7 undone: exactly those are missing, and there are ten results in the end."""
    log, names = Log(tmp_path / "log"), [str(number) for number in range(10)]
    list(log.write(result(name) for name in names if name not in "37"))
    assert missing(read(log.path).results, SETTING, names) == ["3", "7"]
    list(log.write(result(name) for name in "37"))
    assert sorted(found.sample for found in read(log.path).results) == names
    assert missing(read(log.path).results, SETTING, names) == []


@pytest.mark.parametrize(
    "change",
    [
        {"checkpoint": "d"},
        {"task": "u"},
        {"version": 2},
        {"file": "g"},
        {"shots": 1},
        {"temperature": 1.0},
        {"top_k": 5},
        {"top_p": 0.5},
        {"seed": 1},
    ],
)
def test_results_of_another_setting_do_not_count(change):
    assert missing([result("a")], SETTING.model_copy(update=change), ["a"]) == ["a"]


@given(st.integers(0, 2000), st.integers(1, 5))
def test_a_log_that_was_cut_anywhere_keeps_what_is_whole(tmp_path_factory, cut, count):
    path = tmp_path_factory.mktemp("log") / "log"
    names = [f"s{number}" for number in range(count)]
    list(Log(path).write(result(name, output="a\u2028b\nc\x1b") for name in names))
    content = path.read_bytes()
    path.write_bytes(content[:cut])
    # A line of which the end alone is missing is a result all the same.
    lines = content.split(b"\n")[:-1]
    complete = sum(content[:cut].startswith(b"\n".join(lines[: number + 1])) for number in range(count))
    found = read(path)
    assert len(found.results) == complete
    assert found.damaged <= 1
    list(Log(path).write(result(name) for name in missing(found.results, SETTING, names)))
    again = read(path)
    assert sorted(each.sample for each in again.results) == names
    assert again.damaged == found.damaged


def test_what_was_written_comes_back_to_the_letter(tmp_path):
    odd = result("a", output="\u2028\u0085\x00é字", nll=(float("inf"), float("nan")), correct=None, truncated=True)
    list(Log(tmp_path / "log").write([odd]))
    (found,) = read(tmp_path / "log").results
    assert found.output == odd.output
    assert str(found.nll) == "(inf, nan)"
    assert (tmp_path / "log").read_bytes().count(b"\n") == 1


def test_each_result_is_written_before_the_next_is_begun(tmp_path):
    log, seen = Log(tmp_path / "log"), []

    def results():
        for name in "abc":
            seen.append(len(read(log.path).results))
            yield result(name)

    list(log.write(results()))
    assert seen == [0, 1, 2]


def test_an_error_keeps_what_is_done(tmp_path):
    def results():
        yield result("a")
        raise ResultsError("boom")

    with pytest.raises(ResultsError, match="boom"):
        list(Log(tmp_path / "log").write(results()))
    assert [found.sample for found in read(tmp_path / "log").results] == ["a"]


def test_logs_that_are_none(tmp_path):
    assert read(tmp_path / "none") == ([], 0)
    with pytest.raises(ResultsError, match="can't be read"):
        read(tmp_path)
    (tmp_path / "log").write_bytes(b"{}\n\n[1]\n\xff\n")
    assert read(tmp_path / "log") == ([], 3)
    with pytest.raises(ResultsError, match=r"log can't be written: .*; free the disk"):
        list(Log(tmp_path / "none" / "log").write([result("a")]))

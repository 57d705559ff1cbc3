import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import TaskError
from harness.tasks.task import read

OURS = sorted((Path(__file__).parents[2] / "fixtures" / "tasks").glob("*.jsonl"))
HEADER = {"schema": 1, "task": "t", "version": 1, "kind": "choice", "language": "en"}
CHOICE = {"id": "a", "prompt": "p", "choices": ["x", "y"], "answer": 1}
CLOZE = {"id": "a", "prompt": "p", "answer": "x"}


def written(tmp_path, *lines, end="\n"):
    path = tmp_path / "t.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text(end.join(texts), encoding="utf-8")
    return path


def test_our_own_are_read():
    assert {read(path).header.kind for path in OURS} == {"choice", "cloze", "exact", "generation"}
    assert {read(path).header.language for path in OURS} == {"en", "zh"}


def test_a_task_is_its_header_and_its_samples(tmp_path):
    task = read(written(tmp_path, HEADER, CHOICE, "", {**CHOICE, "id": "b", "answer": 0}, ""))
    assert (task.header.task, task.header.version, task.header.stop, task.header.tokens) == ("t", 1, "\n", 32)
    assert [(sample.id, sample.solution) for sample in task.samples] == [("a", "y"), ("b", "x")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1 is no header"),
        (["{"], "line 1 is no header"),
        (["[1]"], "line 1 is no header"),
        ([CHOICE], "line 1 is no header: schema: Field required"),
        ([{**HEADER, "schema": 2}, CHOICE], "has schema 2, newer than 1: upgrade mindspore-harness"),
        ([{**HEADER, "kind": "guess"}], "line 1 is no header: kind: Input should be 'choice', 'cloze'"),
        ([{**HEADER, "task": "../x"}], "line 1 is no header: task: String should match"),
        ([{**HEADER, "version": 0}], "line 1 is no header: version"),
        ([{**HEADER, "extra": 0}], "line 1 is no header: extra: Extra inputs"),
        ([HEADER], "has no samples; add a line for each"),
        ([HEADER, CHOICE, '{"id": "b", "prom'], "line 3 is broken: Invalid JSON"),
        ([HEADER, {"id": "b"}], "line 2 is broken: prompt: Field required"),
        ([HEADER, {**CHOICE, "prompt": ""}], "line 2 is broken: prompt"),
        ([HEADER, {**CHOICE, "id": "a b"}], "line 2 is broken: id"),
        ([HEADER, CHOICE, CHOICE], "line 3: id 'a' was used before; give each its own"),
        ([HEADER, {**CHOICE, "answer": 2}], "line 2: answer 2 is out of range; .*0 to 1"),
        ([HEADER, {**CHOICE, "answer": -1}], "line 2: answer -1 is out of range"),
        ([HEADER, {**CHOICE, "answer": "y"}], "line 2: answer 'y' is out of range"),
        ([HEADER, {**CHOICE, "answer": None}], "line 2: answer None is out of range"),
        ([HEADER, {**CHOICE, "choices": ["x"]}], "line 2: a choice needs at least two endings"),
        ([HEADER, {**CHOICE, "choices": ["x", ""]}], "line 2: a choice needs at least two endings, none of them empty"),
        ([{**HEADER, "kind": "cloze"}, CHOICE], "line 2: a task of kind 'cloze' has no choices"),
        (
            [{**HEADER, "kind": "cloze"}, {**CLOZE, "answer": " "}],
            "line 2: answer ' ' must be a text that is not",
        ),
        ([{**HEADER, "kind": "exact"}, {**CLOZE, "answer": 1}], "line 2: answer 1 must be a text"),
        (
            [{**HEADER, "kind": "exact", "tokens": 2}, {**CLOZE, "answer": "字"}],
            "has 3 tokens, and 2 are written at most",
        ),
        ([{**HEADER, "kind": "generation"}, CLOZE], "line 2: a task of kind 'generation' has no right answer"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, lines, message):
    with pytest.raises(TaskError, match=message):
        read(written(tmp_path, *lines))


def test_files_that_are_no_text(tmp_path):
    with pytest.raises(TaskError, match=r"t\.jsonl can't be read: No such file"):
        read(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_bytes(b"{\xff}")
    with pytest.raises(TaskError, match="byte 1 is not UTF-8"):
        read(tmp_path / "t.jsonl")


def test_separators_inside_a_text_end_no_line(tmp_path):
    task = read(written(tmp_path, HEADER, {**CHOICE, "prompt": "one\u2028two\u0085three\x0c"}))
    assert task.samples[0].prompt == "one\u2028two\u0085three\x0c"


def test_shots_are_solved_and_never_the_question(tmp_path):
    samples = [{"id": f"s{i}", "prompt": f"q{i} ", "choices": ["no", f"a{i}"], "answer": 1} for i in range(3)]
    task = read(written(tmp_path, HEADER, *samples))
    assert task.prompt(task.samples[2], 0) == "q2 "
    assert task.prompt(task.samples[2], 2) == "q0 a0\nq1 a1\nq2 "
    assert task.prompt(task.samples[0], 9) == "q1 a1\nq2 a2\nq0 "


@given(st.text(min_size=1, max_size=40), st.integers(0, 3))
def test_any_text_comes_back(tmp_path_factory, text, shots):
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    lines = [HEADER, {**CHOICE, "prompt": text}, {**CHOICE, "id": "b", "prompt": text}]
    path.write_bytes("\n".join(json.dumps(line) for line in lines).encode())
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(TaskError):
            read(path)
        return
    task = read(path)
    assert task.prompt(task.samples[0], shots).endswith(text)
    assert task.prompt(task.samples[0], shots).count(f"{text}y\n") >= min(shots, 1)

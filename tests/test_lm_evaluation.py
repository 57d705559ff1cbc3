"""lm-evaluation-harness asks a real checkpoint, and comes to our numbers."""

import importlib.util
import json
import math
import statistics
from pathlib import Path

import pytest

from harness import Checkpoints, Scenario
from harness.checkpoints.store import FOLDER, Store
from harness.errors import CheckpointError, TaskError
from harness.examination import Examination, examine, log_beside
from harness.launch import train
from harness.launch.code import Code
from harness.lm_evaluation import Asked, evaluate
from harness.tasks.log import read
from harness.tasks.summary import scores

ROOT = Path(__file__).parents[1]
CODE = Code(ROOT)
TASKS = ROOT / "fixtures" / "tasks"
INSTALLED = importlib.util.find_spec("lm_eval") is not None


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Of a model that learned some letters."""
    folder = tmp_path_factory.mktemp("run")
    scenario = Scenario(model="nano", steps=150, batch=16, sequence=64, learning_rate=5e-3, eval_sequences=0)
    train(scenario.replace(checkpoints=Checkpoints(every=150)), "cpu", CODE, folder, 120.0)
    return Store(folder / FOLDER).path(150)


def exact(checkpoint, folder):
    """A task of which the model writes two answers of three: it was asked before."""
    header = {"schema": 1, "task": "written", "version": 1, "language": "en", "tokens": 8}
    prompts = ["the software ", "in no event ", "permission "]
    asking = folder / "asking.jsonl"
    samples = [{"id": f"s{number}", "prompt": prompt} for number, prompt in enumerate(prompts)]
    asking.write_text("\n".join(map(json.dumps, [{**header, "kind": "generation"}, *samples])))
    examine(checkpoint, Examination((asking,)), CODE, folder / "asked.jsonl")
    written = {result.sample: result.output.strip() for result in read(folder / "asked.jsonl").results}
    path = folder / "written.jsonl"
    answers = [written["s0"], "zzz", written["s2"]]
    solved = [{**sample, "answer": answer} for sample, answer in zip(samples, answers, strict=True)]
    path.write_text("\n".join(map(json.dumps, [{**header, "kind": "exact"}, *solved])))
    return path


@pytest.mark.skipif(not INSTALLED, reason="lm-evaluation-harness is not installed: the extra lm-eval")
@pytest.mark.parametrize("shots", [0, 1])
def test_it_comes_to_our_numbers(checkpoint, tmp_path, shots):
    """Accuracies, their standard errors, and nats, of three kinds of tasks, in two languages."""
    files = [TASKS / "notices.jsonl", TASKS / "chinese.jsonl", TASKS / "endings.jsonl", exact(checkpoint, tmp_path)]
    theirs = evaluate(checkpoint, Asked([str(path) for path in files], shots), CODE)
    log = tmp_path / "ours.jsonl"
    examine(checkpoint, Examination(tuple(files), shots), CODE, log)
    results = read(log).results
    ours = {setting.task: score for setting, score in scores(results).items()}
    metric = {"notices": "acc_bytes", "chinese": "acc_bytes", "endings": "acc", "written": "exact_match"}
    assert theirs.keys() == metric.keys()
    for task, name in metric.items():
        assert theirs[task][name] == pytest.approx(ours[task].value), task
        assert theirs[task][f"{name}_stderr"] == pytest.approx(ours[task].error), task
    nats = [result.nll[0] for result in results if result.setting.task == "endings"]
    assert theirs["endings"]["perplexity"] == pytest.approx(math.exp(statistics.mean(nats)), rel=1e-4)
    if not shots:
        assert 0 < theirs["written"]["exact_match"] < 1


@pytest.mark.skipif(not INSTALLED, reason="lm-evaluation-harness is not installed: the extra lm-eval")
def test_a_task_of_its_own_is_asked_too(checkpoint, tmp_path):
    """A folder of YAML, as its users keep theirs: the perplexity of whole texts."""
    text = "permission is hereby granted, free of charge, to any person obtaining a copy of this software " * 2
    (tmp_path / "texts.json").write_text(json.dumps({"text": text}))
    (tmp_path / "texts.yaml").write_text(
        "task: texts\n"
        "dataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path / 'texts.json'}}}, cache_dir: {tmp_path / 'cache'}}}\n"
        "test_split: test\n"
        "output_type: loglikelihood_rolling\n"
        'doc_to_text: ""\n'
        'doc_to_target: "{{text}}"\n'
        "metric_list: [{metric: byte_perplexity}]\n"
    )
    found = evaluate(checkpoint, Asked(["texts"], include=tmp_path), CODE)
    assert 2 < found["texts"]["byte_perplexity"] < 60
    with pytest.raises(
        TaskError, match="lm-evaluation-harness has no task 'nothing'; name one of its own, or a folder of YAML"
    ):
        evaluate(checkpoint, Asked(["nothing"]), CODE)


@pytest.mark.skipif(not INSTALLED, reason="lm-evaluation-harness is not installed: the extra lm-eval")
def test_what_it_cannot_be_asked_is_refused_before_anything_starts(checkpoint, tmp_path):
    with pytest.raises(TaskError, match=r"prose\.jsonl: lm-evaluation-harness has no measure of variety"):
        evaluate(checkpoint, Asked([str(TASKS / "prose.jsonl")]), CODE)
    with pytest.raises(TaskError, match=r"shots=10: task notices\.jsonl has 10 samples"):
        evaluate(checkpoint, Asked([str(TASKS / "notices.jsonl")], shots=10), CODE)
    with pytest.raises(CheckpointError, match="it is no complete checkpoint"):
        evaluate(tmp_path, Asked([str(TASKS / "notices.jsonl")]), CODE)
    assert not log_beside(checkpoint).exists()


@pytest.mark.skipif(INSTALLED, reason="lm-evaluation-harness is installed")
def test_without_it_the_extra_is_named(checkpoint):
    with pytest.raises(TaskError, match=r"is not installed: pip install 'mindspore-harness\[lm-eval\]'"):
        evaluate(checkpoint, Asked(["hellaswag"]), CODE)

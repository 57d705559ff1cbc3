"""A checkpoint as a model of lm-evaluation-harness: ``python -m harness.trainer.lm_evaluate FOLDER``."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

from datasets import Dataset
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from harness.corpus import Tokens
from harness.decoding import Decoding
from harness.errors import HarnessError, TaskError
from harness.files import write_atomically
from harness.launch.child import REQUEST
from harness.lm_evaluation import ANSWER, Request
from harness.tasks.task import Task, read
from harness.tasks.windows import rolling
from harness.trainer.examine import Examiner, as_tokens, prepared

DEFAULT_TOKENS = 32
"""Written where a task does not say how many."""

METRICS = {
    # Ours divides by bytes, which is what a token is here.
    "choice": ("multiple_choice", ["acc", "acc_bytes"]),
    "cloze": ("loglikelihood", ["acc", "perplexity"]),
    "exact": ("generate_until", ["exact_match"]),
}
"""Kind of our task → its kind, and its metrics."""


class CheckpointModel(LM):
    """Answers lm-evaluation-harness. Tokens are bytes; an empty context is a line's end."""

    def __init__(self, examiner: Examiner) -> None:
        super().__init__()
        self.examiner = examiner

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        """Nats of each continuation behind its context, negated, and whether it is what greedy decoding writes.

        Where both do not fit, the beginning of the context is left out.
        """
        pairs = []
        for request in requests:
            context, continuation = (as_tokens(text) for text in request.args)
            room = self.examiner.sequence + 1 - len(continuation)
            if room < 1:
                raise TaskError(f"a continuation of {len(continuation)} tokens exceeds the context")
            pairs.append((_given(context)[-room:], continuation))
        found = self.examiner.score(pairs)
        return [(-nll, hits == len(pair[1])) for (nll, hits), pair in zip(found, pairs, strict=True)]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        """Negated nats of whole texts: each token is predicted once, from as much before it as fits."""
        totals = []
        for request in requests:
            pieces = rolling(as_tokens(request.args[0]), self.examiner.sequence, as_tokens("\n"))
            totals.append(-float(sum(nll for nll, _ in self.examiner.score(pieces))))
        return totals

    def generate_until(self, requests: list[Any]) -> list[str]:
        """Continues contexts, greedily unless a temperature is asked for."""
        found = []
        for request in requests:
            context, how = request.args
            most = int(how.get("max_gen_toks", DEFAULT_TOKENS))
            stops = how.get("until") or []
            temperature = float(how.get("temperature", 0.0)) if how.get("do_sample") else 0.0
            room = max(1, self.examiner.sequence + 1 - most)
            prompt = _given(as_tokens(context))[-room:]
            stops = [stops] if isinstance(stops, str) else list(stops)
            found.append(self.examiner.write(prompt, most, stops, Decoding(temperature), 0)[0])
        return found


def _given(context: Tokens) -> Tokens:
    return context if len(context) else as_tokens("\n")


def exported(task: Task, shots: int) -> dict[str, Any]:
    """Our task as lm-evaluation-harness describes one."""
    kind, metrics = METRICS[task.header.kind]
    rows = [
        {
            "prompt": task.prompt(sample, shots),
            "choices": list(sample.choices),
            "answer": sample.answer,
            "solution": sample.solution.strip() if task.header.kind == "exact" else sample.solution,
        }
        for sample in task.samples
    ]
    described: dict[str, Any] = {
        "task": task.header.task,
        "custom_dataset": lambda **_: {"test": Dataset.from_list(rows)},
        "output_type": kind,
        "test_split": "test",
        "doc_to_text": lambda row: row["prompt"],
        "doc_to_target": lambda row: row["answer"] if kind == "multiple_choice" else row["solution"],
        "target_delimiter": "",
        # They are in the prompt already.
        "num_fewshot": 0,
        "metric_list": [{"metric": name} for name in metrics],
        "metadata": {"version": task.header.version},
    }
    if kind == "multiple_choice":
        described["doc_to_choice"] = lambda row: row["choices"]
    if kind == "generate_until":
        described["generation_kwargs"] = {"until": [task.header.stop], "max_gen_toks": task.header.tokens}
        described["filter_list"] = [
            {"name": "stripped", "filter": [{"function": "custom", "filter_fn": _stripped}, {"function": "take_first"}]}
        ]
    return described


def _stripped(answers: list[list[str]], rows: list[Any]) -> list[list[str]]:
    return [[answer.strip() for answer in each] for each in answers]


def numbers(metrics: dict[str, Any]) -> dict[str, float]:
    """The metrics alone; with the names of filters where there are several."""
    values = {name: value for name, value in metrics.items() if "," in name and isinstance(value, int | float)}
    filters = {name.partition(",")[2] for name in values}
    return {name if len(filters) > 1 else name.partition(",")[0]: float(value) for name, value in values.items()}


def main(folder: Path) -> None:
    """Does what the request in a folder asks for."""
    request = Request.model_validate_json((folder / REQUEST).read_text(encoding="utf-8"))
    logging.getLogger().setLevel(logging.ERROR)
    model = CheckpointModel(prepared(Path(request.checkpoint), request.root, request.hardware))
    manager = TaskManager(include_path=request.include)
    known = set(manager.all_tasks)
    for name in request.names:
        if name not in known:
            raise TaskError(
                f"lm-evaluation-harness has no task {name!r}; name one of its own, or a folder of YAML with --include"
            )
    tasks = [*(exported(read(Path(file)), request.shots) for file in request.files), *request.names]
    found = simple_evaluate(
        model,
        tasks=tasks,
        num_fewshot=request.shots,
        limit=request.limit,
        task_manager=manager,
        bootstrap_iters=100,
    )
    results = {name: numbers(metrics) for name, metrics in found["results"].items()}
    write_atomically(folder / ANSWER, json.dumps(results))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except HarnessError as error:
        sys.exit(f"error: {error}")

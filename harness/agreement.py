"""Which values of a scenario can't stand, alone or together. Pure."""

import difflib
import math
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from harness.decoding import Decoding
from harness.errors import ScenarioError
from harness.metrics.speed import WARMUP_STEPS
from harness.models import PRESETS, sizes_of
from harness.references import is_reference, makes_data

if TYPE_CHECKING:
    from harness.scenario import Scenario


MOST_MASKED = 0.15
"""Share of masked tokens; a larger one leaves too little to learn from."""

CODE = {".c", ".cc", ".cpp", ".cu", ".go", ".h", ".hpp", ".ipynb", ".java", ".js", ".json", ".py", ".rs", ".sh", ".ts"}
"""Endings of files whose lines mean something in their order alone."""


def check_values(scenario: "Scenario") -> None:
    """Refuses values that can't stand, whatever the others are.

    Raises:
        ScenarioError: names the value and the remedy.
    """
    if scenario.clip_norm == 0:
        raise ScenarioError("clip_norm=0 would erase every gradient; use None to clip nothing")
    if sizes_of(scenario.model) is None and not is_reference(scenario.model):
        near = difflib.get_close_matches(scenario.model, PRESETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"presets are {', '.join(PRESETS)}"
        raise ScenarioError(f"model={scenario.model!r} is neither a preset nor 'package.module:function'; {hint}")
    kind, _, file = scenario.data.partition(":")
    of_file = kind in ("text", "records", "mindrecord") and file
    if scenario.data not in ("text", "markov") and not of_file and not makes_data(scenario.data):
        raise ScenarioError(
            f"data={scenario.data!r} is unknown; use 'text', 'text:FILE', 'records:FILE', 'mindrecord:FOLDER', "
            "'markov' or 'package.module:function'"
        )
    if scenario.step and not is_reference(scenario.step):
        raise ScenarioError(f"step={scenario.step!r} is no 'package.module:function'")
    Decoding(scenario.temperature, scenario.top_k, scenario.top_p)
    if scenario.masking > MOST_MASKED:
        raise ScenarioError(
            f"masking={scenario.masking:g} hides too much to learn from; use at most {MOST_MASKED}, usually 0.05 to 0.1"
        )
    if scenario.shuffle_sentences and (
        scenario.data == "markov" or makes_data(scenario.data) or PurePosixPath(scenario.data).suffix.lower() in CODE
    ):
        raise ScenarioError(
            f"shuffle_sentences=True and data={scenario.data!r} disagree: it has no sentences, its order is its meaning"
        )
    for name, file in (("data", scenario.data.partition(":")[2]), ("strategy", scenario.strategy)):
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts:
            raise ScenarioError(
                f"{name}={getattr(scenario, name)!r} leaves the project; name a file below the project's folder"
            )


def check_agreement(scenario: "Scenario") -> None:
    """Refuses fields that disagree.

    Raises:
        ScenarioError: names both, and the remedy.
    """
    parts = scenario.layout.dp * scenario.accumulation * scenario.micro_batches
    if scenario.batch % parts:
        raise ScenarioError(
            f"batch={scenario.batch} is not divisible by {parts} (layout.dp={scenario.layout.dp} × "
            f"accumulation={scenario.accumulation} × micro_batches={scenario.micro_batches}); use a multiple of {parts}"
        )
    if scenario.micro_batches > 1 and scenario.layout.pp == 1:
        raise ScenarioError(
            f"micro_batches={scenario.micro_batches} and layout.pp=1 disagree: without a pipeline use accumulation"
        )
    _check_pipeline(scenario)
    _check_records(scenario)
    _check_stored(scenario)
    if not scenario.fused_reduction and scenario.layout.dp == 1:
        raise ScenarioError("fused_reduction=False and layout.dp=1 disagree: there is nothing to reduce")
    if scenario.mode != "graph" and scenario.execution_order == "graph":
        raise ScenarioError(
            f"execution_order='graph' and mode={scenario.mode!r} disagree: without a graph there is no order to keep"
        )
    for name in ("graph_kernel", "compile_cache"):
        if scenario.mode != "graph" and getattr(scenario, name):
            raise ScenarioError(f"{name}=True and mode={scenario.mode!r} disagree: it is for graphs")
    if scenario.warmup_steps > scenario.steps:
        raise ScenarioError(
            f"warmup_steps={scenario.warmup_steps} and steps={scenario.steps} disagree: it would never end"
        )
    if scenario.eval_every and not scenario.eval_sequences:
        raise ScenarioError(f"eval_every={scenario.eval_every} and eval_sequences=0 disagree: nothing to evaluate on")
    if scenario.quick_sequences and not (scenario.eval_every and scenario.quick_sequences < scenario.eval_sequences):
        raise ScenarioError(
            f"quick_sequences={scenario.quick_sequences}, eval_every={scenario.eval_every} and "
            f"eval_sequences={scenario.eval_sequences} disagree: during training fewer are evaluated than at the end"
        )
    if scenario.sample_every and not scenario.samples:
        raise ScenarioError(f"sample_every={scenario.sample_every} and samples=0 disagree: nothing to sample")
    if scenario.sample_every and scenario.sample_tokens < 3:
        raise ScenarioError(
            f"sample_every={scenario.sample_every} and sample_tokens={scenario.sample_tokens} disagree: distinct_3 "
            "needs three tokens"
        )
    for name, what in (("eval_every", "evaluate"), ("sample_every", "sample"), ("trace_every", "trace")):
        if getattr(scenario, name) > scenario.steps:
            raise ScenarioError(
                f"{name}={getattr(scenario, name)} and steps={scenario.steps} disagree: it would never {what}"
            )
    _check_checkpoints(scenario)
    if scenario.profiled_steps and WARMUP_STEPS + scenario.profiled_steps > scenario.steps:
        raise ScenarioError(
            f"profiled_steps={scenario.profiled_steps} and steps={scenario.steps} disagree: {WARMUP_STEPS} steps of "
            "warm-up come first"
        )
    _check_cuts(scenario)
    _check_own_step(scenario)
    _check_engine(scenario)


def _check_checkpoints(scenario: "Scenario") -> None:
    asked = scenario.checkpoints
    if asked.every > scenario.steps:
        raise ScenarioError(
            f"checkpoints.every={asked.every} and steps={scenario.steps} disagree: use at most {scenario.steps}, which "
            "saves once, at the end"
        )
    if asked.best and not (asked.every and scenario.eval_sequences):
        raise ScenarioError(
            f"checkpoints.best={asked.best!r}, checkpoints.every={asked.every} and "
            f"eval_sequences={scenario.eval_sequences} disagree: nothing says which is best"
        )


def _check_records(scenario: "Scenario") -> None:
    is_records = scenario.data.startswith("records:")
    if is_records and scenario.samples:
        raise ScenarioError(
            f"samples={scenario.samples} and data={scenario.data!r} disagree: prompts are cut from running text; set "
            "samples=0"
        )
    if is_records and scenario.shuffle_sentences:
        raise ScenarioError(
            f"shuffle_sentences=True and data={scenario.data!r} disagree: a record may be a single sentence; use "
            "text:FILE"
        )
    if scenario.bad_records != "fail" and not is_records:
        raise ScenarioError(
            f"bad_records={scenario.bad_records!r} and data={scenario.data!r} disagree: it has no records; use "
            "records:FILE"
        )


def _check_stored(scenario: "Scenario") -> None:
    if not scenario.data.startswith("mindrecord:"):
        return
    for name in ("masking", "shuffle_sentences"):
        if getattr(scenario, name):
            raise ScenarioError(
                f"{name}={getattr(scenario, name)!r} and data={scenario.data!r} disagree: its rows are as they were "
                "converted; use text:FILE"
            )
    if scenario.data_processes:
        raise ScenarioError(
            f"data_processes=True and data={scenario.data!r} disagree: MindSpore reads MindRecord by threads alone"
        )


def _check_own_step(scenario: "Scenario") -> None:
    if not scenario.step:
        return
    wanted = {
        "layout.tp": scenario.layout.tp > 1,
        "layout.pp": scenario.layout.pp > 1,
        "layout.optimizer_sharding": scenario.layout.optimizer_sharding,
        "checkpoints.every": scenario.checkpoints.every > 0,
        "guard.policy": bool(scenario.guard.policy),
        "trace_every": scenario.trace_every > 0,
        "engine": scenario.engine != "explicit",
    }
    for name, asked in wanted.items():
        if asked:
            raise ScenarioError(f"{name} and step={scenario.step!r} disagree: only this trainer's own step can do that")


def _check_engine(scenario: "Scenario") -> None:
    if scenario.engine == "explicit":
        if scenario.strategy:
            raise ScenarioError(f"strategy={scenario.strategy!r} and engine='explicit' disagree: nothing would load it")
        return
    wanted = {
        "checkpoints.every": (scenario.checkpoints.every, "can save and resume"),
        "trace_every": (scenario.trace_every, "can look at its layers"),
        "guard.policy": (scenario.guard.policy, "looks before it updates"),
    }
    for name, (value, what) in wanted.items():
        if value:
            raise ScenarioError(
                f"{name}={value!r} and engine={scenario.engine!r} disagree: only engine='explicit' {what}"
            )
    sizes = sizes_of(scenario.model)
    if sizes is None:
        raise ScenarioError(
            f"engine={scenario.engine!r} and model={scenario.model!r} disagree: it knows the decoder's operators only"
        )
    if scenario.pipeline_schedule not in ("1f1b", "interleaved"):
        raise ScenarioError(
            f"engine={scenario.engine!r} has no pipeline_schedule={scenario.pipeline_schedule!r}; use 1f1b or "
            "interleaved"
        )
    if sizes.tied and scenario.layout.pp > 1:
        raise ScenarioError(
            f"engine={scenario.engine!r} and model={scenario.model!r} disagree: MindSpore 2.10 can't cut a tied "
            "embedding over stages; use layout.pp=1, a model that is not tied, or engine='explicit'"
        )
    if scenario.optimizer != "adamw" or scenario.precision == "float16":
        raise ScenarioError(
            f"engine={scenario.engine!r} trains by adamw, in float32 or bfloat16, not by "
            f"optimizer={scenario.optimizer!r} in precision={scenario.precision!r}"
        )
    if scenario.mode != "graph":
        raise ScenarioError(f"engine={scenario.engine!r} and mode={scenario.mode!r} disagree: it works on graphs")
    if scenario.eval_sequences or scenario.samples:
        raise ScenarioError(
            f"engine={scenario.engine!r} only trains: set eval_sequences=0 and samples=0, or use engine='explicit'"
        )


def _check_pipeline(scenario: "Scenario") -> None:
    schedule, chunks = scenario.pipeline_schedule, scenario.chunks
    if scenario.layout.pp == 1 and schedule != "1f1b":
        raise ScenarioError(f"pipeline_schedule={schedule!r} and layout.pp=1 disagree: there is no pipeline")
    if (schedule == "interleaved") != (chunks > 1):
        raise ScenarioError(
            f"pipeline_schedule={schedule!r} and chunks={chunks} disagree: interleaving, and nothing else, needs "
            "at least two chunks a stage"
        )


def _check_cuts(scenario: "Scenario") -> None:
    model = sizes_of(scenario.model)
    if model is None:
        return
    sizes = {"heads": model.heads, "feed_forward": model.feed_forward, "vocabulary": model.vocabulary}
    for name, size in sizes.items():
        if size % scenario.layout.tp:
            raise ScenarioError(
                f"layout.tp={scenario.layout.tp} and model={scenario.model!r} disagree: its {name} of {size} is not "
                f"divisible; nearest that works: {_nearest_divisors(math.gcd(*sizes.values()), scenario.layout.tp)}"
            )
    parts = scenario.layout.pp * scenario.chunks
    if model.layers % parts:
        raise ScenarioError(
            f"layout.pp={scenario.layout.pp} × chunks={scenario.chunks} and model={scenario.model!r} disagree: its "
            f"{model.layers} layers are not divisible by {parts}; nearest that works: "
            f"{_nearest_divisors(model.layers, parts)}"
        )


def _nearest_divisors(number: int, wanted: int) -> str:
    """The divisors of a number on both sides of one that is none."""
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    below, above = [d for d in divisors if d < wanted], [d for d in divisors if d > wanted]
    return " or ".join(str(d) for d in (*below[-1:], *above[:1]))

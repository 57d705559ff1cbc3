"""Every metric of the harness: its name, unit, direction, scope and default tolerances."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["higher", "lower", "match"]
Scope = Literal["numeric", "machine", "ratio"]


@dataclass(frozen=True)
class Metric:
    """One thing that is measured."""

    name: str
    """The field's standard term; the same in code, JSON and reports."""

    unit: str
    """Unit of the value; ``""`` for a bare number."""

    direction: Direction
    """Which way is better; ``match`` means that any change is a fault."""

    scope: Scope
    """On what the value depends: ``numeric`` on hardware type, architecture and MindSpore version; ``machine`` on the
    very machine; ``ratio`` divides two measurements of one session and travels between machines."""

    relative: float
    """Default tolerance as a share of the baseline."""

    absolute: float = 0.0
    """Default tolerance in the metric's unit; the larger of the two tolerances holds."""

    deviating_steps: int = 0
    """Default number of steps of a curve that may leave the tolerance."""

    curve: bool = False
    """Whether there is one value a step."""

    steady: bool = False
    """Whether it is an average over the steady steps, so that their spread says whether it was measured at all."""

    digits: Literal["float32", "float64", "integer"] = "float32"
    """Format in which the value is computed; a tolerance below its spacing is refused."""

    description: str = ""
    """One line for reports and documentation."""


def ratio(metric: str) -> Metric:
    """The metric that divides two runs' values of ``metric``, named ``<metric>_ratio``."""
    base = METRICS[metric]
    relative = 0.25 if base.scope == "machine" else base.relative
    description = f"{base.name} of one run divided by that of another."
    name = f"{metric}_ratio"
    return Metric(name, "", base.direction, "ratio", relative, digits="float64", description=description)


# fmt: off
_CURVES = (
    # Another vector width moved losses by at most 1e-7 and norms by 4e-6 over 40 steps (docs/tolerances.md).
    Metric("loss", "nat", "match", "numeric", 2e-4, curve=True,
           description="Token-weighted cross-entropy of each step."),
    Metric("grad_norm", "", "match", "numeric", 1e-3, 1e-5, curve=True,
           description="Global norm of the reduced gradient, before clipping."),
    Metric("update_norm", "", "match", "numeric", 1e-3, 1e-6, curve=True,
           description="Global norm of each update of the parameters."),
    Metric("learning_rate", "", "match", "numeric", 1e-6, digits="float64", curve=True,
           description="Learning rate of each step."),
    Metric("tokens_seen", "token", "match", "numeric", 0.0, digits="float64", curve=True,
           description="Tokens that counted in all steps so far, over all ranks."),
    Metric("batch_checksum", "", "match", "numeric", 0.0, digits="float64", curve=True,
           description="CRC-32 of the tokens of each step on the reporting rank, in runs that keep checkpoints."),
    Metric("checkpoint_perplexity_curve", "", "match", "numeric", 1e-3, digits="float64", curve=True,
           description="Held-out perplexity at each checkpoint."),
    Metric("perplexity_curve", "", "match", "numeric", 1e-3, digits="float64", curve=True,
           description="Held-out perplexity at each evaluation during training."),
    Metric("token_accuracy_curve", "", "match", "numeric", 1e-2, 2e-3, digits="float64", curve=True,
           description="Token accuracy at each of them."),
    Metric("distinct_3_curve", "", "match", "numeric", 0.2, 0.05, digits="float64", curve=True,
           description="distinct_3 of the continuations sampled during training."),
)

_TEXT = (
    Metric("validation_perplexity", "", "lower", "numeric", 1e-3, digits="float64",
           description="exp of the token-weighted loss on the held-out split."),
    # Of two tokens that are equally likely to a hair, another processor may take the other.
    Metric("token_accuracy", "", "higher", "numeric", 1e-2, 2e-3, digits="float64",
           description="Share of the held-out split's tokens that the model held for the likeliest."),
    # Sampled text is discrete: one flipped token changes the rest of a continuation, so these bounds are statistical.
    Metric("distinct_1", "", "higher", "numeric", 0.2, 0.02, digits="float64",
           description="Unique / total tokens of the sampled continuations."),
    Metric("distinct_2", "", "higher", "numeric", 0.2, 0.05, digits="float64",
           description="Unique / total 2-grams."),
    Metric("distinct_3", "", "higher", "numeric", 0.2, 0.05, digits="float64",
           description="Unique / total 3-grams."),
    Metric("repetition", "", "lower", "numeric", 0.2, 0.1, digits="float64",
           description="1 − distinct_3: share of 3-grams that occurred before."),
    Metric("longest_repeat", "token", "lower", "numeric", 0.3, 2.0, digits="float64",
           description="Longest span that stands twice in a continuation, on average over them."),
    Metric("self_similarity", "", "lower", "numeric", 0.3, 0.05, digits="float64",
           description="Share of 3-grams that two continuations have in common, on average over all pairs."),
    Metric("empty_outputs", "", "lower", "numeric", 0.0, digits="float64",
           description="Share of the continuations that show nothing but white space."),
)

_COUNTS = (
    Metric("parameters", "", "match", "numeric", 0.0, digits="integer",
           description="Trainable values of the model."),
    Metric("training_flops", "FLOP", "match", "numeric", 0.0, digits="float64",
           description="Model FLOPs of one step; recomputation does not count."),
    Metric("diverged_replicas", "", "match", "numeric", 0.0, digits="integer",
           description="Ranks that hold a parameter or shard otherwise than the first that holds it, after training."),
    Metric("skipped_updates", "", "lower", "numeric", 0.0, digits="integer",
           description="Updates that the guard left out, where one watches."),
    Metric("communication_calls", "", "lower", "numeric", 0.0, digits="integer",
           description="Collectives and messages that the busiest rank sends in one step."),
    Metric("communication_volume", "MiB", "lower", "numeric", 0.0, digits="float64",
           description="What they are given by the rank that gives most."),
    Metric("in_flight_memory", "MiB", "lower", "numeric", 0.0, digits="float64",
           description="Inputs that the fullest stage of a pipeline keeps at once for backwards to come."),
    Metric("optimizer_memory", "MiB", "lower", "numeric", 0.0, digits="float64",
           description="Optimizer states that the fullest rank keeps."),
    Metric("graph_all_reduce_calls", "", "lower", "numeric", 0.0, digits="integer",
           description="AllReduces that a step of MindSpore's own engine calls, by its compiled graph."),
    Metric("graph_all_gather_calls", "", "lower", "numeric", 0.0, digits="integer",
           description="AllGathers, likewise."),
    Metric("graph_reduce_scatter_calls", "", "lower", "numeric", 0.0, digits="integer",
           description="ReduceScatters, likewise."),
    Metric("graph_all_to_all_calls", "", "lower", "numeric", 0.0, digits="integer",
           description="AlltoAlls, likewise."),
    Metric("graph_send_calls", "", "lower", "numeric", 0.0, digits="integer",
           description="Sends between stages, likewise."),
    Metric("graph_receive_calls", "", "lower", "numeric", 0.0, digits="integer",
           description="Receives between stages, likewise."),
    Metric("graph_communication_volume", "MiB", "lower", "numeric", 0.0, digits="float64",
           description="What all of them are given in a step by the rank that gives most."),
    Metric("graph_redistribution_operators", "", "lower", "numeric", 0.0, digits="integer",
           description="Operators of the graph that cut a tensor anew because the next one needs it otherwise."),
    Metric("graph_unexplained_operators", "", "lower", "numeric", 0.0, digits="integer",
           description="Communication operators of the graph that nothing in the layout asks for."),
    Metric("operator_calls", "", "lower", "numeric", 0.0, digits="float64",
           description="Operators that a step calls, where steps were profiled."),
    Metric("cast_calls", "", "lower", "numeric", 0.0, digits="float64",
           description="Those of them that change a type."),
    Metric("transpose_calls", "", "lower", "numeric", 0.0, digits="float64",
           description="Those of them that reorder axes."),
    Metric("peak_memory", "MiB", "lower", "numeric", 0.05, 2.0, digits="float64",
           description="Largest peak of MindSpore's memory pool over the ranks; on CPU in steps of 1 MiB."),
)

_TIMES = (
    Metric("throughput", "token/s", "higher", "machine", 0.05, steady=True, digits="float64",
           description="Tokens a second over the steady window."),
    Metric("step_time", "s", "lower", "machine", 0.05, steady=True, digits="float64",
           description="Mean seconds of a step over the steady window."),
    Metric("compile_time", "s", "lower", "machine", 0.5, 1.0, digits="float64",
           description="Seconds of the first step beyond a steady one."),
    Metric("data_wait", "", "lower", "machine", 0.5, 0.05, digits="float64",
           description="Share of the steady time in which training waits for its rows; no part of the step time."),
    Metric("benchmark_time", "s", "lower", "machine", 0.1, steady=True, digits="float64",
           description="Median of what pytest-benchmark timed, round by round, in the test's own process."),
    Metric("bubble_ratio", "", "lower", "machine", 0.3, 0.03, digits="float64",
           description="Share of a pipeline's flush in which its ranks work on no micro-batch, as measured."),
    Metric("replayed_bubble_ratio", "", "lower", "machine", 0.3, 0.05, digits="float64",
           description="Share of the flush that the busiest stage would wait, if each action took its time alone."),
    Metric("exposed_communication", "", "lower", "machine", 0.5, 0.05, digits="float64",
           description="Share of a step in which the rank that waits most communicates and does not compute."),
    Metric("communication_share", "", "lower", "machine", 0.5, 0.05, digits="float64",
           description="Share of a step in which a rank communicates, hidden or not, where its profile tells."),
    Metric("checkpoint_time", "s", "lower", "machine", 0.3, 0.02, digits="float64",
           description="Time that saving a checkpoint takes, median over them."),
    Metric("checkpoint_share", "", "lower", "machine", 0.3, 0.02, digits="float64",
           description="Time of saving as a share of that of the steps between two checkpoints."),
    Metric("device_utilization", "", "higher", "machine", 0.1, 0.02, digits="float64",
           description="Share of a step in which the least busy device computes, where its profile tells."),
    Metric("achieved_flops", "FLOP/s", "higher", "machine", 0.05, steady=True, digits="float64",
           description="Model FLOPs divided by the step time."),
)
# fmt: on

METRICS = {metric.name: metric for metric in (*_CURVES, *_TEXT, *_COUNTS, *_TIMES)}
"""All metrics by name."""

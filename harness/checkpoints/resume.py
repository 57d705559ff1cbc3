"""Who may go on from a checkpoint. Pure."""

from harness.checkpoints.manifest import Manifest
from harness.errors import CheckpointError, ScenarioError
from harness.scenario import Scenario

FREE = {
    "batch",
    "accumulation",
    "micro_batches",
    "pipeline_schedule",
    "chunks",
    "layout",
    "fused_reduction",
    "mode",
    "graph_kernel",
    "compile_cache",
    "execution_order",
    "recompute",
    "data_workers",
    "data_processes",
    "data_prefetch",
    "eval_every",
    "eval_sequences",
    "quick_sequences",
    "samples",
    "sample_tokens",
    "sample_every",
    "temperature",
    "top_k",
    "top_p",
    "profiled_steps",
    "checkpoints",
    "guard",
    "trace_every",
}
"""Fields that say how a training is run or looked at, not what is learned; and the batch, since the place in the data
is counted in samples."""


def check_resume(manifest: Manifest, scenario: Scenario) -> None:
    """Refuses what would be another training.

    Args:
        manifest: of the checkpoint.
        scenario: that would go on from it.

    Raises:
        CheckpointError: names what differs.
    """
    where = _where(manifest)
    try:
        saved = Scenario.from_dict(manifest.scenario)
    except ScenarioError as error:
        raise CheckpointError(f"{where} is of a scenario that this harness can't read: {error}") from None
    mine, theirs = scenario.to_dict(), saved.to_dict()
    changed = [name for name in mine if mine[name] != theirs[name] and name not in FREE]
    if changed == ["steps"]:
        if scenario.schedule != "constant":
            raise CheckpointError(
                f"steps={scenario.steps} and {where} disagree: it was saved with steps={saved.steps}, and "
                f"schedule={scenario.schedule!r} would jump; use the same steps, or schedule='constant'"
            )
    elif changed:
        differences = "; ".join(f"{name}: {theirs[name]!r} → {mine[name]!r}" for name in changed)
        raise CheckpointError(f"{where} is of another scenario ({differences}); begin anew, or use the same")
    if manifest.step > scenario.steps:
        raise CheckpointError(f"{where} is past steps={scenario.steps}; use more steps, or begin anew")


def check_data(manifest: Manifest, scenario: Scenario, data: str, windows: int) -> None:
    """Refuses to go on with other data.

    Args:
        manifest: of the checkpoint.
        scenario: that would go on from it.
        data: digest of its corpus.
        windows: rows of its training split.

    Raises:
        CheckpointError: the data is not what the checkpoint was trained on.
    """
    where = _where(manifest)
    if (manifest.data, manifest.windows) != (data, windows):
        raise CheckpointError(
            f"data={scenario.data!r} is not what {where} was trained on: {manifest.data} with {manifest.windows} rows, "
            f"now {data} with {windows}; its place in them would mean nothing"
        )


def _where(manifest: Manifest) -> str:
    return f"the checkpoint of step {manifest.step}"

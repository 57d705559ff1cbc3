"""The schedule that a scenario names."""

from harness.scenario import Scenario
from harness.schedule.orders import Schedule, gpipe, interleaved, one_f_one_b, zero_bubble


def schedule_of(scenario: Scenario) -> Schedule:
    """The order of work for one part of a scenario's batch."""
    stages, micro_batches = scenario.layout.pp, scenario.micro_batches
    if scenario.pipeline_schedule == "interleaved":
        return interleaved(stages, micro_batches, scenario.chunks)
    plain = {"gpipe": gpipe, "1f1b": one_f_one_b, "zero_bubble": zero_bubble}
    return plain[scenario.pipeline_schedule](stages, micro_batches)

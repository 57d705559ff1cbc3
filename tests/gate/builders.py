"""Runs and records made by hand, for tests of what decides on them."""

from harness import Scenario
from harness.environment import Environment
from harness.gate.baseline import candidate
from harness.metrics import METRICS
from harness.run import Run

MACHINE = "cpu-2c"


def make_run(scenario=None, mindspore="2.10.0", machine=MACHINE, curves=None, undefined=None, **metrics):
    return Run(
        scenario=(scenario or Scenario()).to_dict(),
        hardware="cpu",
        environment=Environment(hardware="cpu", architecture="x86_64", mindspore=mindspore, data="text-1"),
        machine=machine,
        metrics=metrics,
        undefined=undefined or {},
        curves=curves or {},
        step_seconds=[1.0, 1.0, 1.0],
    )


def make_record(run):
    times = {name: value for name, value in run.metrics.items() if METRICS[name].scope == "machine"}
    return candidate(run, {n: v for n, v in run.metrics.items() if n not in times}, run.curves, times)

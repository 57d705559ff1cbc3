from types import SimpleNamespace

import pytest

from harness import Scenario
from harness.configuration import Configuration
from harness.gate import Status
from harness.gate.baseline import BaselineFile
from harness.gate.benchmark import timed
from harness.gate.checks import Gate


def benchmark(*rounds, disabled=False):
    stats = SimpleNamespace(stats=SimpleNamespace(data=list(rounds))) if rounds else None
    return SimpleNamespace(disabled=disabled, stats=stats)


def gate(baseline=None):
    return Gate(baseline, Configuration(), "suites/a/test_x.py::test_x[cpu]", hardware="cpu")


def approved(*rounds, scenario=None):
    first = gate()
    first.check_benchmark(benchmark(*rounds), scenario or Scenario())
    return BaselineFile(runs=first.candidates)


def test_the_median_of_the_rounds_counts():
    run = timed(benchmark(1.0, 5.0, 2.0), Scenario(), "cpu")
    assert run["benchmark_time"] == 2.0
    assert run.hardware == run.environment.hardware == "cpu"
    assert not run.undefined


@pytest.mark.parametrize(
    ("disabled", "reason"),
    [(True, "pytest-benchmark is disabled, as under xdist: run it with -n 0"), (False, "the benchmark timed nothing")],
)
def test_nothing_timed_is_invalid_and_not_a_pass(disabled, reason):
    checked = gate(approved(1.0, 1.0, 1.0))
    (verdict,) = checked.check_benchmark(benchmark(disabled=disabled), Scenario())
    assert verdict.status is Status.INVALID
    assert reason in verdict.reason
    assert checked.failures == [verdict]


@pytest.mark.parametrize(("factor", "status"), [(1.0, Status.PASS), (3.0, Status.REGRESSED), (0.3, Status.IMPROVED)])
def test_is_judged_as_other_times_are(factor, status):
    (verdict,) = gate(approved(1.0, 1.0, 1.0)).check_benchmark(benchmark(*[factor] * 3), Scenario())
    assert (verdict.label, verdict.metric, verdict.status) == ("benchmark", "benchmark_time", status)


def test_rounds_that_scatter_say_nothing():
    (verdict,) = gate(approved(*[1.0] * 8)).check_benchmark(
        benchmark(1.0, 1.0, 0.2, 3.0, 0.2, 3.0, 1.0, 0.2, 3.0), Scenario()
    )
    assert verdict.status is Status.INCONCLUSIVE


def test_a_benchmark_of_something_else_is_refused():
    checked = gate(approved(1.0, scenario=Scenario(batch=8)))
    (verdict,) = checked.check_benchmark(benchmark(1.0), Scenario(batch=16))
    assert verdict.status is Status.INVALID
    assert "batch: 8 → 16" in verdict.reason


def test_a_benchmark_is_not_confirmed_by_training():
    checked = gate(approved(1.0, 1.0, 1.0))
    checked.check_benchmark(benchmark(3.0, 3.0, 3.0), Scenario())
    checked.settle(lambda run, suspicions: pytest.fail("nothing can train it again"))
    assert [v.status for v in checked.failures] == [Status.REGRESSED]

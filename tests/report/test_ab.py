"""What a paired experiment says."""

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.report.ab import comparison_table, loss_table
from harness.run import Run

RUN = {
    "scenario": {},
    "hardware": "cpu",
    "environment": {"hardware": "cpu", "architecture": "x", "mindspore": "2", "data": "d"},
    "machine": "m",
    "step_seconds": [],
}


def run(step_time, loss=(3.0, 2.0, 1.0)):
    return Run(**RUN, metrics={"step_time": step_time, "throughput": 1 / step_time}, curves={"loss": list(loss)})


def shown(table):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def words(pairs):
    return {
        line.split()[0]: line.split()[-1] for line in shown(comparison_table(pairs)).splitlines() if line[1:2].isalpha()
    }


@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=8))
def test_twice_as_slow_is_worse_in_time_and_in_throughput(times):
    found = words([(run(t), run(2 * t)) for t in times])
    assert (found["step_time"], found["throughput"]) == ("worse", "worse")
    swapped = words([(run(2 * t), run(t)) for t in times])
    assert (swapped["step_time"], swapped["throughput"]) == ("better", "better")


def test_what_scatters_about_one_is_no_difference():
    pairs = [(run(1.0), run(ratio)) for ratio in (0.9, 1.1, 0.95, 1.04)]
    assert words(pairs)["step_time"] == "seen"


def test_what_is_the_same_is_equal():
    assert words([(run(1.0), run(1.0))] * 3)["loss"] == "equal"


def test_losses_stand_side_by_side():
    lines = shown(loss_table((run(1.0), run(1.0, (3.0, 2.5, 1.5))))).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["1", "3.000000", "3.000000", "+0.00e+00"],
        ["2", "2.000000", "2.500000", "+5.00e-01"],
        ["3", "1.000000", "1.500000", "+5.00e-01"],
    ]

from harness.gate import baseline
from harness.gate.baseline import BaselineFile
from harness.history.courses import Filter, courses
from harness.history.database import History, Point, Series
from harness.report.trends import plot, sparkline, trend_table
from tests.gate.builders import MACHINE, make_record, make_run

TEST = "suites/training/test_x.py::test_a[cpu]"
RUN = make_run(step_time=1.0, peak_memory=50.0, curves={"loss": [3.0, 2.0]})
HASH = RUN.description.hash


def filled(tmp_path, name="h.sqlite", status="PASS", **values):
    """A history of one session a value."""
    history = History(str(tmp_path / name))
    for metric, numbers in values.items():
        for i, value in enumerate(numbers):
            points = [(Series(TEST, "run", metric, MACHINE), Point(value, status, HASH, "2.10.0"))]
            history.add(f"{status}-{metric}-{i}", f"2026-01-{i + 1:02d}T00:00:00Z", f"{i:07d}", points)
    return history


def approve(tmp_path, run=RUN):
    path = baseline.baseline_path(TEST, "cpu")
    baseline.write(tmp_path / "baselines" / path, BaselineFile(runs={"run": make_record(run)}))
    return tmp_path / "baselines"


def test_each_kind_of_value_is_anchored_to_what_was_approved(tmp_path):
    history = filled(tmp_path, step_time=[2.0] * 3, peak_memory=[60.0], loss=[2.5])
    found = {c.series.metric: c.trend for c in courses(history, approve(tmp_path), Filter(), 200)}
    assert {name: trend.anchor for name, trend in found.items()} == {"step_time": 1.0, "peak_memory": 50.0, "loss": 2.0}
    assert found["peak_memory"].drift == 0.2


def test_without_a_baseline_or_with_one_of_another_scenario_the_first_runs_are_the_anchor(tmp_path):
    history = filled(tmp_path, step_time=[2.0] * 3)
    assert courses(history, tmp_path / "none", Filter(), 200)[0].trend.anchor == 2.0
    other = make_run(scenario=RUN.description.replace(steps=7), step_time=1.0)
    assert courses(history, approve(tmp_path, other), Filter(), 200)[0].trend.anchor == 2.0


def test_points_of_an_earlier_scenario_are_left_out(tmp_path):
    history = filled(tmp_path, step_time=[2.0] * 3)
    series = Series(TEST, "run", "step_time", MACHINE)
    history.add("new", "", "", [(series, Point(9.0, "PASS", "other", "2.10.0"))])
    (course,) = courses(history, tmp_path, Filter(), 200)
    assert [point.value for point in course.points] == [9.0]


def test_filters(tmp_path):
    history = filled(tmp_path, step_time=[1.0], peak_memory=[1.0])
    for wanted, expected in [
        (Filter(metric="step"), ["step_time"]),
        (Filter(metric="*memory"), ["peak_memory"]),
        (Filter(test="test_a"), ["peak_memory", "step_time"]),
        (Filter(test="test_b"), []),
        (Filter(machine=MACHINE), ["peak_memory", "step_time"]),
        (Filter(machine="other"), []),
    ]:
        assert [c.series.metric for c in courses(history, tmp_path, wanted, 200)] == expected


def test_the_table_names_drift_and_changes(tmp_path):
    from rich.console import Console

    history = filled(tmp_path, step_time=[1.0] * 8 + [1.2] * 8)
    (course,) = courses(history, approve(tmp_path), Filter(), 200)
    console = Console(record=True, width=200)
    console.print(trend_table([course], 40))
    text = console.export_text()
    assert "+20.00 % on 2026-01-09 at 0000008" in text
    assert "▁▁▁▁▁▁▁▁████████" in text
    drawn = plot(course, 80)
    assert "\x1b" not in drawn
    assert len(drawn.splitlines()) >= 10


def test_sparklines():
    assert sparkline([1.0, 2.0]) == "▁█"
    assert sparkline([3.0, 3.0]) == "▁▁"


def test_the_anchor_stays_however_few_runs_are_looked_at(tmp_path):
    """Each of 100 runs is 0.1 % slower: seen from its first ten, the last one is 10 % off."""
    history = filled(tmp_path, step_time=[1.001**i for i in range(100)])
    for last in (200, 50, 6):
        (course,) = courses(history, tmp_path, Filter(), last)
        assert course.trend.anchor < 1.01
        assert course.trend.drifted


def test_a_broken_window_never_becomes_the_reference(tmp_path):
    for status in ("REGRESSED", "INVALID", "INCONCLUSIVE"):
        history = filled(tmp_path, status=status, step_time=[2.0] * 5)
        assert courses(history, tmp_path, Filter(), 200) == []
    history = filled(tmp_path, step_time=[1.0] * 20)
    (course,) = courses(history, tmp_path, Filter(), 200)
    assert course.trend.anchor == 1.0
    assert not course.trend.drifted
    assert len(course.points) == 35


def test_a_metric_of_another_version_is_left_out(tmp_path):
    history = filled(tmp_path, step_time=[1.0], flops_per_joule=[1.0])
    assert [c.series.metric for c in courses(history, tmp_path, Filter(), 200)] == ["step_time"]


def test_the_hardware_is_a_parameter_of_its_own(tmp_path):
    test = "suites/training/test_x.py::test_a[cpu_adam-gpu]"
    path = baseline.baseline_path(test, "gpu")
    baseline.write(tmp_path / "baselines" / path, BaselineFile(runs={"run": make_record(RUN)}))
    history = History(str(tmp_path / "h.sqlite"))
    history.add("s", "", "", [(Series(test, "run", "step_time", MACHINE), Point(2.0, "PASS", HASH, "2.10.0"))])
    assert courses(history, tmp_path / "baselines", Filter(), 200)[0].trend.anchor == 1.0

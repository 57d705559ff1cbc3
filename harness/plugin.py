"""The pytest plugin: hooks and fixtures that hand everything on."""

import hashlib
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import configuration
from harness.audit import stand_in
from harness.devices import HARDWARE, Devices
from harness.errors import HardwareError, HarnessError
from harness.faults import FAULTS, Fault
from harness.gate import baseline
from harness.gate.checks import Gate, Recent
from harness.gate.verdict import Verdict
from harness.history import OFF, VARIABLE, address
from harness.launch.placement import LAUNCHERS, STARTS, Placement
from harness.launch.supervise import Progress
from harness.marks import hardware_of, is_untimed
from harness.measure import ShowProgress
from harness.orphans import OrphanWatch
from harness.progress import ProgressWatch
from harness.report.terminal import failure_text, number, session_summary
from harness.reporter import Reporter, record
from harness.results import new_folder
from harness.scenario import Scenario
from harness.session import Session, Trainer
from harness.topology import BINDINGS, check_binding, numa_nodes

if TYPE_CHECKING:
    from harness.confirmation import Confirmer
    from harness.reading import Reader

SESSION = pytest.StashKey[Session]()
REPORTER = pytest.StashKey[Reporter]()
PROGRESS = pytest.StashKey[ProgressWatch]()
GATE = pytest.StashKey[Gate | None]()
CONFIRMER = pytest.StashKey["Confirmer"]()
HISTORY = pytest.StashKey[str | None]()
CONFIGURATION = pytest.StashKey[configuration.Configuration]()
_found: dict[str, Devices] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the harness's options."""
    group = parser.getgroup("harness", "mindspore-harness")
    group.addoption("--require-hardware", action="store_true", help="fail, not skip, where the hardware is missing")
    group.addoption("--results", metavar="DIR", help="folder of results (default: .harness in the root folder)")
    group.addoption("--baselines", metavar="DIR", help="folder of baselines (default: [tool.harness] baselines)")
    group.addoption(
        "--history",
        metavar="URL",
        help=f"database of values or {OFF!r} (default: ${VARIABLE}, or SQLite in --results)",
    )
    group.addoption("--strict-baselines", action="store_true", help="fail where a baseline's test no longer exists")
    group.addoption("--bind", default="none", metavar="|".join(BINDINGS), help="bind ranks to cores or NUMA nodes")
    group.addoption("--launcher", default="local", metavar="|".join(LAUNCHERS), help="what starts ranks")
    group.addoption(
        "--start",
        default="fork",
        metavar="|".join(STARTS),
        help="how ranks start on CPU: forked from a process that has imported MindSpore, or as fresh processes",
    )
    group.addoption("--ranks-per-node", type=int, default=8, metavar="N", help="most ranks on a node of a cluster")
    group.addoption("--deadline", type=float, default=600.0, metavar="SECONDS", help="longest time of one run")
    group.addoption(
        "--confirm-against",
        metavar="REF|PYTHON",
        help="run suspicious times again, in turn with this commit or interpreter, before they count",
    )
    group.addoption(
        "--plant", metavar="FAULT[=AMOUNT]", help=f"plant a fault into every run, to see it caught: {', '.join(FAULTS)}"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers marks and settles where this session's files go."""
    for name in HARDWARE:
        config.addinivalue_line("markers", f"{name}: runs on {name} (set by @hardware)")
    config.addinivalue_line("markers", "frontend: compiles for devices that are not there (harness audit --setup)")
    config.addinivalue_line("markers", "cards(n): needs n devices, on CPU n processes (set by @cards)")
    config.addinivalue_line("markers", "smoke: one quick claim of each suite")
    config.addinivalue_line("markers", "untimed: looks at no time, so its runs may share cores and compiled graphs")
    try:
        fault = Fault.parse(config.option.plant) if config.option.plant else None
        binding = check_binding(config.option.bind, numa_nodes())
        placement = Placement(config.option.launcher, binding, config.option.ranks_per_node, config.option.start)
        config.stash[CONFIGURATION] = configuration.read(config.rootpath)
        config.stash[HISTORY] = address(config.option.history, _results(config))
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None
    worker = getattr(config, "workerinput", None)
    folder = Path(worker["harness_folder"]) if worker else new_folder(_results(config))
    progress = _progress(config) if _on_terminal() and not worker else lambda scenario: nullcontext()
    config.stash[SESSION] = Session(config.rootpath, folder, config.option.deadline, fault, progress, placement)
    watch = OrphanWatch(_baselines(config), strict=config.option.strict_baselines)
    config.pluginmanager.register(watch, "harness-orphans")
    if config.option.confirm_against is not None:
        config.stash[CONFIRMER] = _confirmer(config, worker is not None)
    if not worker:
        config.add_cleanup(config.stash[SESSION].remove_graphs)
        config.stash[PROGRESS] = ProgressWatch(config, config.stash[HISTORY])
        config.pluginmanager.register(config.stash[PROGRESS], "harness-progress")
        config.stash[REPORTER] = Reporter(config.stash[SESSION], _baselines(config), config.stash[HISTORY])


def _confirmer(config: pytest.Config, is_worker: bool) -> "Confirmer":
    from harness.confirmation import Confirmer

    try:
        confirmer = Confirmer(config.stash[SESSION], config.option.confirm_against)
        if not is_worker:
            config.stash[SESSION].prepare()
            confirmer.worktrees.open()
            config.add_cleanup(confirmer.worktrees.close)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None
    return confirmer


def _results(config: pytest.Config) -> Path:
    return Path(config.option.results or config.rootpath / ".harness").absolute()


def _on_terminal() -> bool:
    return sys.__stderr__ is not None and sys.__stderr__.isatty() and not os.environ.get("CI")


def _progress(config: pytest.Config) -> ShowProgress:
    from harness.report.progress import bar

    capture = config.pluginmanager.getplugin("capturemanager")

    def show(scenario: Scenario) -> AbstractContextManager[Progress | None]:
        left = str(config.stash[PROGRESS].outlook or "")
        return bar(scenario, left, capture.global_and_fixture_disabled() if capture else nullcontext())

    return show


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells an xdist worker this session's folder."""
    node.workerinput["harness_folder"] = str(node.config.stash[SESSION].folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort tests and refuse an unwritable results folder before anything is trained.

    Quick claims come first, and timed tests before untimed ones, which can take over their runs.
    """
    items.sort(key=lambda item: (item.get_closest_marker("smoke") is None, is_untimed(item)))
    if config.option.collectonly:
        return
    try:
        if not any(_trains(item) and not _missing(item) for item in items):
            return
        config.stash[SESSION].prepare()
    except HarnessError as error:
        # An xdist worker that ends here would take the reason with it: there, each test's trainer gives it.
        if not hasattr(config, "workerinput"):
            raise pytest.UsageError(str(error)) from None


def _trains(item: pytest.Item) -> bool:
    return not {"trainer", "reader"}.isdisjoint(getattr(item, "fixturenames", ()))


def _missing(item: pytest.Item) -> str:
    """Why an item can't run here; empty where it can."""
    name = hardware_of(item)
    if not name:
        return ""
    if name not in _found:
        _found[name] = item.config.stash[SESSION].devices(name)
    found = _found[name]
    needed = next((mark.args[0] for mark in item.iter_markers("cards")), 1)
    if not found.count:
        return found.reason
    return f"needs {needed} {name} devices, found {found.count}" if found.count < needed else ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what this machine can't run, or fails it where a CI job must have measured something."""
    if item.get_closest_marker("frontend") and (unprepared := stand_in.missing()):
        pytest.skip(unprepared)
    reason = _missing(item)
    if reason and item.config.option.require_hardware:
        pytest.fail(f"{reason} (--require-hardware)", pytrace=False)
    if reason:
        pytest.skip(reason)


@pytest.fixture
def hardware(request: pytest.FixtureRequest) -> str:
    """The hardware of this instance of the test."""
    name: str | None = getattr(request, "param", None)
    if name is None:
        raise HardwareError(f'{request.node.name} names no hardware; decorate it with @hardware("cpu", …)')
    return name


@pytest.fixture
def trainer(request: pytest.FixtureRequest, hardware: str) -> Trainer:
    """Runs scenarios as real MindSpore processes."""
    return Trainer(request.config.stash[SESSION], hardware, request.node.nodeid, is_untimed(request.node))


@pytest.fixture
def reader(request: pytest.FixtureRequest, hardware: str) -> Iterator["Reader"]:
    """Reads a scenario's rows as training would, without training."""
    from harness.launch.code import Code
    from harness.reading import Reader

    session = request.config.stash[SESSION]
    session.prepare()
    digest = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]
    with Reader(hardware, Code(session.root), session.folder / "readings" / f"{digest}.log") as reader:
        yield reader


@pytest.fixture
def gate(request: pytest.FixtureRequest, hardware: str) -> Gate:
    """Compares runs with this test's approved baseline; the test fails at its end if any value fell short."""
    nodeid = request.node.nodeid
    approved = baseline.read(_baselines(request.config) / baseline.baseline_path(nodeid, hardware))
    collected = Gate(approved, request.config.stash[CONFIGURATION], nodeid, _recent(request.config, nodeid), hardware)
    request.node.stash[GATE] = collected
    return collected


def _recent(config: pytest.Config, nodeid: str) -> Recent:
    url = config.stash[HISTORY]
    if url is None:
        return lambda label, run, since: {}
    from harness.history.session import recent

    return lambda label, run, since: recent(url, nodeid, label, run, since)


def _baselines(config: pytest.Config) -> Path:
    return Path(config.option.baselines or config.rootpath / config.stash[CONFIGURATION].baselines).absolute()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fails a test at its end, once, with every value that fell short."""
    item.stash.setdefault(GATE, None)
    try:
        result = yield
    except BaseException as error:
        collected = _closed(item, complete=False)
        if collected and collected.failures:
            if isinstance(error, pytest.skip.Exception):
                pytest.fail(failure_text(collected.failures), pytrace=False)
            item.add_report_section("call", "gate", failure_text(collected.failures))
        raise
    _settle(item)
    collected = _closed(item, complete=True)
    if collected is None:
        return result
    if not collected.verdicts:
        pytest.fail("the test asked for the gate and checked nothing: call gate.check(run)", pytrace=False)
    problems = [failure_text(collected.failures)] if collected.failures else []
    try:
        _keep_candidates(item, collected)
    except HarnessError as error:
        problems.append(str(error))
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
    return result


def _settle(item: pytest.Item) -> None:
    """Has the gate's suspicions run again, where the session was asked to."""
    collected, confirmer = item.stash.get(GATE, None), item.config.stash.get(CONFIRMER, None)
    if collected and confirmer:
        collected.settle(lambda run, suspicions: confirmer(hardware_of(item), run, suspicions))


def _closed(item: pytest.Item, complete: bool) -> Gate | None:
    """The test's gate, if it asked for one, with its verdicts among the test's properties."""
    collected = item.stash.get(GATE, None)
    if collected is None:
        return None
    collected.close(complete)
    properties = {f"{v.label}.{v.metric}": _property(v) for v in collected.verdicts}
    item.user_properties = [(n, v) for n, v in item.user_properties if n not in properties] + [*properties.items()]
    return collected


def _property(verdict: Verdict) -> str:
    return f"{verdict.status.value}: {number(verdict.baseline)} → {number(verdict.value, verdict.unit)}"


def _keep_candidates(item: pytest.Item, checked: Gate) -> None:
    session = item.config.stash[SESSION]
    if session.fault is None:
        path = baseline.baseline_path(item.nodeid, hardware_of(item))
        baseline.write(session.folder / "candidates" / path, baseline.BaselineFile(runs=checked.candidates))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    """Shows the user's own errors without our code, and attaches what xdist must carry to the controller."""
    report = yield
    _shorten(report, call)
    if report.when == "call" or report.outcome != "passed":
        trainer = getattr(item, "funcargs", {}).get("trainer")
        record(report, item, hardware_of(item), trainer, item.stash.get(GATE, None))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Shows what is wrong with a scenario or a mark in one or two lines."""
    report = yield
    if getattr(report, "call", None) is not None:
        _shorten(report, report.call)
    return report


def _shorten(report: Any, call: Any) -> None:
    """Replaces the traceback of an error that is the user's to mend by its place and its text."""
    if report.failed and call.excinfo is not None and isinstance(call.excinfo.value, HarnessError):
        home = Path(__file__).parent
        places = [(Path(str(entry.path)), entry.lineno + 1) for entry in call.excinfo.traceback]
        places = [(path, line) for path, line in places if path.is_file() and home not in path.parents]
        where = f"{places[-1][0].name}:{places[-1][1]}: " if places else ""
        report.longrepr = f"{where}error: {call.excinfo.value}"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Lets the reporter hear of every test; only where results come together, not on a worker."""
    reporter = session.config.stash.get(REPORTER, None)
    if reporter:
        session.config.pluginmanager.register(reporter, "harness-reporter")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints the table of values, worst first."""
    reporter = config.stash.get(REPORTER, None)
    if not reporter or not reporter.results.tests:
        return
    for problem in reporter.problems:
        terminalreporter.write_line(f"harness: {problem}", red=True)
    for note in reporter.notes:
        terminalreporter.write_line(f"harness: {note}", yellow=True)
    terminal = terminalreporter
    if reporter.results.verdicts:
        terminal.section("harness")
        width = terminal._tw.fullwidth
        verbose = config.stash[PROGRESS].verbosity > 0
        terminal.write(session_summary(reporter.results, width, terminal.hasmarkup, verbose))
    if reporter.page:
        terminal.write_line(f"as a page: {reporter.page}")

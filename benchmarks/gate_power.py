"""How often each rule cries wolf, and how many true slowdowns it finds.

    python benchmarks/gate_power.py                 simulated machines
    python benchmarks/gate_power.py --record 20     also real runs of this machine, recorded first: about 12 s a run

Simulated: runs differ by 3 % (log-normal, between runs), steps inside a run by 2 %, and one step in twenty is stretched
by up to a half. Recorded: in turn, an unchanged run and runs slowed by 5, 10 and 20 %. Seeds are fixed. Every rule sees
the same runs: ten approved ones and a new one; ours with confirmation may also run base and head in turn.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.stats import mannwhitneyu

from harness.commands.null_runs import TINY
from harness.faults import Fault
from harness.gate import Policy, Status
from harness.gate.confirm import LOOKS, decide
from harness.gate.screen import rules_out_regression, screen
from harness.launch.code import Code
from harness.measure import measure
from harness.metrics import METRICS
from harness.metrics.speed import WARMUP_STEPS

Steps = npt.NDArray[np.float64]
"""Seconds of each step of a run, or of several runs."""

STEP_TIME, POLICY = METRICS["step_time"], Policy(0.05)
APPROVED, STEPS = 10, 40
SLOWDOWNS = (0.0, 0.05, 0.1, 0.2)
RECORDED = Path(".harness/gate_power.json")


@dataclass(frozen=True)
class Trial:
    """Runs that were approved, a new one, and pairs of base and head for who asks for them."""

    approved: Steps
    new: Steps
    base: Steps
    head: Steps


Rule = Callable[[Trial], bool]


def runs(random: np.random.Generator, count: int) -> Steps:
    """(runs, steps) of a simulated machine."""
    between = np.exp(random.normal(0, 0.03, (count, 1)))
    inside = np.exp(random.normal(0, 0.02, (count, STEPS)))
    return between * inside * (1 + (random.random(inside.shape) < 0.05) * random.uniform(0, 0.5, inside.shape))


def simulated(slowdown: float, trials: int) -> Iterator[Trial]:
    """Trials on simulated machines, the same noise for every slowdown."""
    random = np.random.default_rng(2026)
    for _ in range(trials):
        made = runs(random, APPROVED + 1 + 2 * LOOKS[-1])
        approved, new, pairs = np.split(made, (APPROVED, APPROVED + 1))
        yield Trial(approved, (1 + slowdown) * new[0], pairs[::2], (1 + slowdown) * pairs[1::2])


def recorded(slowdown: float, trials: int) -> Iterator[Trial]:
    """Trials drawn from recorded runs; a pair is two runs that were recorded next to each other."""
    content = {float(name): np.asarray(found) for name, found in json.loads(RECORDED.read_text()).items()}
    nulls, slowed = content[0.0], content[slowdown]
    random = np.random.default_rng(2026)
    for _ in range(trials):
        order = random.permutation(len(nulls))
        first = random.integers(0, len(nulls) - 1, LOOKS[-1])
        # A slowed run was recorded soon after its round's unchanged one; of two unchanged ones, either is the head.
        turn = random.integers(0, 2, LOOKS[-1]) if not slowdown else 0
        base, head = (nulls[first + turn], nulls[first + 1 - turn]) if not slowdown else (nulls[first], slowed[first])
        yield Trial(nulls[order[:APPROVED]], slowed[order[APPROVED]], base, head)


def by_screen(trial: Trial) -> bool:
    """The screen on run means."""
    means = trial.approved.mean(axis=1).tolist()
    return screen(STEP_TIME, float(trial.new.mean()), means, POLICY).status is Status.REGRESSED


def by_confirmation(trial: Trial) -> bool:
    """What the screen can't clear is run in turn."""
    if rules_out_regression(STEP_TIME, float(trial.new.mean()), trial.approved.mean(axis=1).tolist(), POLICY):
        return False
    base, head = trial.base.mean(axis=1).tolist(), trial.head.mean(axis=1).tolist()
    answers = (decide(STEP_TIME, POLICY, base[:pairs], head[:pairs]) for pairs in LOOKS)
    return next((answer for answer in answers if answer), None) is Status.REGRESSED


def threshold(summary: Callable[..., np.float64], share: float, two_sided: bool = False) -> Rule:
    """A fixed share against the last approved run."""

    def rule(trial: Trial) -> bool:
        change = summary(trial.new) / summary(trial.approved[-1]) - 1
        return bool(abs(change) > share if two_sided else change > share)

    return rule


def significance(factor: float) -> Rule:
    """Mann-Whitney on the steps of two runs, p < .002, and medians a factor apart."""

    def rule(trial: Trial) -> bool:
        last = trial.approved[-1]
        slower = np.median(trial.new) > factor * np.median(last)
        return bool(slower and mannwhitneyu(trial.new, last, alternative="greater").pvalue < 0.002)

    return rule


RULES: dict[str, Rule] = {
    "ours: screen, 10 approved runs": by_screen,
    "ours: screen + confirm": by_confirmation,
    "fixed +5 % on the median": threshold(np.median, 0.05),
    "two-sided ±5 % on the mean (Megatron-LM)": threshold(np.mean, 0.05, two_sided=True),
    "+5 % on the minimum (pytest-benchmark)": threshold(np.min, 0.05),
    "+5 % on the mean (pytest-benchmark)": threshold(np.mean, 0.05),
    "Mann-Whitney p < .002, factor 1.1 (asv)": significance(1.1),
    "Mann-Whitney p < .002": significance(1.0),
}


def record(rounds: int) -> None:
    """Records real runs, an unchanged and a slowed one of each kind in turn."""
    found: dict[float, list[list[float]]] = {slowdown: [] for slowdown in SLOWDOWNS}
    folder = RECORDED.parent / "gate_power"
    for number in range(rounds):
        for slowdown, kept in found.items():
            fault = Fault.parse(f"slow_step={slowdown}") if slowdown else None
            run = measure(TINY, "cpu", Code(Path.cwd()), folder, fault=fault)
            kept.append(run.step_seconds[WARMUP_STEPS:])
        print(f"round {number + 1} of {rounds}", flush=True)
        RECORDED.write_text(json.dumps({str(slowdown): kept for slowdown, kept in found.items()}))


def print_table(title: str, source: Callable[[float, int], Iterator[Trial]], trials: int) -> None:
    """One row a rule: the share of trials in which it called the new run slower."""
    table = Table("rule", "false alarms", *(f"finds +{100 * s:.0f} %" for s in SLOWDOWNS[1:]), box=None)
    columns = [list(source(slowdown, trials)) for slowdown in SLOWDOWNS]
    for name, rule in RULES.items():
        table.add_row(name, *(f"{100 * np.mean([rule(trial) for trial in column]):.1f} %" for column in columns))
    Console(width=120, highlight=False).print(f"\n{title}, {trials} trials", table)


def main() -> None:
    """Prints a table for the simulated machines, and one for recorded runs where there are any."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--record", type=int, default=0, metavar="ROUNDS", help=f"at least {APPROVED + 2}")
    options = parser.parse_args()
    if options.record:
        record(max(options.record, APPROVED + 2))
    print_table("simulated", simulated, options.trials)
    if RECORDED.exists():
        nulls = np.log([np.mean(run) for run in json.loads(RECORDED.read_text())["0.0"]])
        title = f"recorded on this machine ({len(nulls)} rounds; runs differ by {100 * np.std(nulls, ddof=1):.1f} %)"
        print_table(title, recorded, options.trials)


if __name__ == "__main__":
    main()

"""How often each rule cries wolf, and how many true slowdowns it finds, on simulated shared machines.

    python benchmarks/gate_power.py [trials]

Runs differ by 3 % (log-normal, between runs), steps inside a run by 2 %, and one step in twenty is stretched by up to a
half. Seeds are fixed. Every rule sees the same runs: ten approved ones, and a new one of 40 steps. The screen alone is
measured; a rerun that confirms is not part of it.
"""

import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.stats import mannwhitneyu

from harness.gate import Policy, Status
from harness.gate.screen import screen
from harness.metrics import METRICS

Runs = npt.NDArray[np.float64]
Rule = Callable[[Runs, npt.NDArray[np.float64]], bool]

APPROVED, STEPS = 10, 40


def simulate(trials: int) -> Runs:
    """(trials, approved + 1 runs, steps) seconds."""
    random = np.random.Generator(np.random.PCG64(2026))
    between = np.exp(random.normal(0, 0.03, (trials, APPROVED + 1, 1)))
    inside = np.exp(random.normal(0, 0.02, (trials, APPROVED + 1, STEPS)))
    spikes = 1 + (random.random(inside.shape) < 0.05) * random.uniform(0, 0.5, inside.shape)
    return between * inside * spikes


def ours(approved: Runs, new: npt.NDArray[np.float64]) -> bool:
    """The screen on run means."""
    means = approved.mean(axis=1).tolist()
    return screen(METRICS["step_time"], float(new.mean()), means, Policy(0.05)).status is Status.REGRESSED


def threshold(summary: Callable[..., np.float64], share: float, two_sided: bool = False) -> Rule:
    """A fixed share against the last approved run."""

    def rule(approved: Runs, new: npt.NDArray[np.float64]) -> bool:
        change = summary(new) / summary(approved[-1]) - 1
        return bool(abs(change) > share if two_sided else change > share)

    return rule


def significance(approved: Runs, new: npt.NDArray[np.float64]) -> bool:
    """Mann-Whitney on the steps of two runs, p < .002, and medians a tenth apart."""
    slower = np.median(new) > 1.1 * np.median(approved[-1])
    return bool(slower and mannwhitneyu(new, approved[-1], alternative="greater").pvalue < 0.002)


def significance_alone(approved: Runs, new: npt.NDArray[np.float64]) -> bool:
    """Mann-Whitney on the steps of two runs, p < .002."""
    return bool(mannwhitneyu(new, approved[-1], alternative="greater").pvalue < 0.002)


RULES: dict[str, Rule] = {
    "ours: screen, 10 approved runs": ours,
    "fixed +5 % on the median": threshold(np.median, 0.05),
    "two-sided ±5 % on the mean": threshold(np.mean, 0.05, two_sided=True),
    "+5 % on the minimum": threshold(np.min, 0.05),
    "+5 % on the mean": threshold(np.mean, 0.05),
    "Mann-Whitney p < .002 and factor 1.1": significance,
    "Mann-Whitney p < .002": significance_alone,
}


def main() -> None:
    """Prints one table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    runs = simulate(trials)
    table = Table("rule", "false alarms", "finds +5 %", "finds +10 %", "finds +20 %", box=None)
    for name, rule in RULES.items():
        shares = [np.mean([rule(run[:-1], factor * run[-1]) for run in runs]) for factor in (1.0, 1.05, 1.1, 1.2)]
        table.add_row(name, *(f"{100 * share:.1f} %" for share in shares))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

"""Breaks the comparator on purpose; its tests must notice every break."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MUTATIONS = {
    "flipped sign": ("difference = actual - expected", "difference = expected - actual"),
    "swapped direction": ('{"higher": 1.0, "lower": -1.0', '{"higher": -1.0, "lower": 1.0'),
    "dropped NaN check": ("bad = np.flatnonzero(~np.isfinite(actual))", "bad = np.flatnonzero([])"),
    "NaN alone is bad": ("~np.isfinite(actual)", "np.isnan(actual)"),
    "share of the value": ("policy.relative * np.abs(expected)", "policy.relative * np.abs(actual)"),
    "signed share": ("policy.relative * np.abs(expected)", "policy.relative * expected"),
    "smaller tolerance": ("np.maximum(policy.relative", "np.minimum(policy.relative"),
    "edge excluded": ("np.abs(difference) > tolerance", "np.abs(difference) >= tolerance"),
    "one-sided change": ("np.abs(difference) > tolerance", "difference > tolerance"),
    "one step too many": ("worse.sum() > allowed", "worse.sum() > allowed + 1"),
    "one step too few": ("worse.sum() > allowed", "worse.sum() >= max(allowed, 1)"),
    "scalar with allowance": ("policy.deviating_steps if is_curve else 0", "policy.deviating_steps"),
    "last step left out": ("worse = changed & ~better", "worse = changed & ~better; worse[-1:] &= len(worse) == 1"),
    "length ignored": ("if len(expected) != len(actual):", "if len(expected) < len(actual):"),
    "cut to the shorter": ("expected = _points(baseline)", "expected = _points(baseline)[: len(actual)]"),
    "baseline NaN accepted": ("if not np.isfinite(expected).all():", "if False:"),
    "empty accepted": ("if not actual.size:", "if False:"),
    "missing accepted": (
        "if value is None:",
        "if value is None and baseline is None:\n        value = 0.0\n    if value is None:",
    ),
    "improvement hidden": ("status, points = Status.IMPROVED, better", "status, points = Status.PASS, better"),
    "spacing unchecked": ("finer.any()", "False"),
    "wrong step named": ("step=first + 1 if is_curve", "step=first if is_curve"),
    "early taken for late": ('"early" if first < EARLY', '"late" if first < EARLY'),
    "course of the wrong step": (
        'else "late"\n    return verdict',
        "else \"late\"\n    verdict.divergence = 'late'\n    return verdict",
    ),
    "lane lost": ("lane=policy.lane", 'lane="gating"'),
}

RUNNER = """
import sys
import harness.gate
import harness.gate.compare
from pathlib import Path
old, new = sys.argv[1:3]
source = Path(sys.modules["harness.gate.compare"].__file__).read_text()
if source.count(old) != 1:
    print(f"{old!r} stands {source.count(old)} times in the comparator")
    sys.exit(9)
namespace = sys.modules["harness.gate.compare"].__dict__
try:
    exec(compile(source.replace(old, new), "mutant", "exec"), namespace)
except Exception as error:
    print(error)
    sys.exit(9)
harness.gate.compare = namespace["compare"]
import pytest
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/gate/test_compare.py"]))
"""


def run(old, new):
    command = [sys.executable, "-c", RUNNER, old, new]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_comparator_as_it_is_passes():
    assert run("def compare(", "def compare(").returncode == 0


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_turns_a_test_red(name):
    done = run(*MUTATIONS[name])
    assert done.returncode == 1, f"{name} went unnoticed:\n{done.stdout}{done.stderr}"

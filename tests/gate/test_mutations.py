"""Breaks the deciding code on purpose; its tests must notice every break."""

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
    "wrong step named": ("else index + 1", "else index"),
    "recorded steps ignored": ("return steps[index] if steps else", "return 0 if False else"),
    "early taken for late": ('"early" if first < EARLY', '"late" if first < EARLY'),
    "course of the wrong step": (
        'else "late"\n    return verdict',
        "else \"late\"\n    verdict.divergence = 'late'\n    return verdict",
    ),
    "lane lost": ("lane=policy.lane", 'lane="gating"'),
}

OF_TIMES = {
    "center by recent runs": ("screen", "mean = statistics.fmean(logs)\n    since", "mean = max(logs)\n    since"),
    "recent runs ignored": ("screen", "_squares(logs) + _squares(since)", "_squares(logs)"),
    "one run is certain": ("screen", "(1 + 1 / runs))", "1 / runs)"),
    "no prior": ("screen", "+ PRIOR_RUNS * PRIOR_SPREAD**2", "+ 1e-9"),
    "everything within": ("screen", "if interval.low <= value <= interval.high:", "if True:"),
    "cleared in one direction": ("screen", '(-1 if metric.direction == "higher"', '(1 if metric.direction == "higher"'),
    "cleared without noise": ("screen", "return worse + math.log(interval.high / interval.center)", "return worse"),
    "flipped ratio": ("confirm", "np.log(head) - np.log(base)", "np.log(base) - np.log(head)"),
    "direction ignored": ("confirm", 'if metric.direction == "higher":', "if False:"),
    "floor ignored": ("confirm", "if most < floor:", "if most < 0:"),
    "estimate for interval": ("confirm", "if least > 0 else None", "if interval.ratio > 1 else None"),
    "base always first": ("confirm", "if pair % 2 == 0 else", "if True else"),
    "disturbed pairs count": ("confirm", "if any(found and", "if any(False and found and"),
    "every pair is looked at": ("confirm", "if len(self.base) in LOOKS:", "if len(self.base) > 2:"),
    "unsettled passes": ("confirm", "self.answer or Status.INCONCLUSIVE", "self.answer or Status.PASS"),
    "crashed head passes": ("confirm", 'if failed.startswith("base")', "if failed"),
    "advisory is run again": ("confirm", 'verdict.lane == "advisory" or', ""),
    "company allowed": ("validity", "run.foreign_load > policy.shared", "run.foreign_load > 1"),
    "devices unchecked": ("validity", "if run.device_processes:", "if False:"),
    "scatter allowed": ("validity", "spread > policy.spread", "spread > 1e9"),
    "any time is steady": ("validity", "if metric.steady else None", "if True else None"),
}

RUNNER = """
import sys
import harness.gate
import harness.gate.checks
from pathlib import Path
name, old, new = sys.argv[1:4]
source = Path(sys.modules[f"harness.gate.{name}"].__file__).read_text()
if source.count(old) != 1:
    print(f"{old!r} stands {source.count(old)} times in {name}")
    sys.exit(9)
namespace = sys.modules[f"harness.gate.{name}"].__dict__
try:
    exec(compile(source.replace(old, new), "mutant", "exec"), namespace)
except Exception as error:
    print(error)
    sys.exit(9)
if name == "compare":
    harness.gate.compare = namespace["compare"]
import pytest
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"tests/gate/test_{name}.py"]))
"""


def run(module, old, new):
    command = [sys.executable, "-c", RUNNER, module, old, new]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["compare", "screen", "confirm", "validity"])
def test_unbroken_code_passes(module):
    done = run(module, "from harness.gate.policy import Policy", "from harness.gate.policy import Policy")
    assert done.returncode == 0, done.stdout


ALL = {name: ("compare", *texts) for name, texts in MUTATIONS.items()} | OF_TIMES


@pytest.mark.parametrize("name", ALL)
def test_a_mutation_turns_a_test_red(name):
    done = run(*ALL[name])
    assert done.returncode == 1, f"{name} went unnoticed:\n{done.stdout}{done.stderr}"

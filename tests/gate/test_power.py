import numpy as np
import pytest

from harness.gate import Policy, Status
from harness.gate.confirm import LOOKS, decide
from harness.gate.power import seen_by_pairs, seen_by_screen, spread
from harness.gate.screen import screen
from harness.metrics import METRICS

STEP_TIME, FLOOR = METRICS["step_time"], Policy(0.05)


def test_spread_is_that_between_runs():
    assert spread([1.0, np.e]) == pytest.approx(np.std([0, 1], ddof=1))
    assert spread([2.0, 2.0]) == 0.0


def test_the_screen_finds_what_it_claims():
    random = np.random.default_rng(0)
    found = []
    for _ in range(500):
        samples = np.exp(random.normal(0, 0.04, 8)).tolist()
        value = (1 + seen_by_screen(samples)) * np.exp(random.normal(0, 0.04))
        found.append(screen(STEP_TIME, float(value), samples, FLOOR).status is Status.REGRESSED)
    assert np.mean(found) >= 0.93


@pytest.mark.parametrize("noise", [0.03, 0.1])
def test_pairs_find_what_they_claim(noise):
    random = np.random.default_rng(0)
    many = np.exp(random.normal(0, noise, 4000)).tolist()
    factor = 1 + seen_by_pairs(many, FLOOR.relative)
    assert factor >= 1.05
    found = []
    for _ in range(200):
        base, head = np.exp(random.normal(0, noise, (2, LOOKS[-1])))
        answers = (decide(STEP_TIME, FLOOR, base[:n].tolist(), (factor * head[:n]).tolist()) for n in LOOKS)
        found.append(next((a for a in answers if a), None) is Status.REGRESSED)
    assert np.mean(found) >= 0.93


def test_a_quiet_machine_claims_its_floor():
    assert seen_by_pairs([1.0, 1.0001, 0.9999], 0.05) == 0.05

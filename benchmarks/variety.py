"""What it takes to look at much text, and at each step.

    python benchmarks/variety.py

Prints a table; never fails.
"""

import resource
import time

import numpy as np

from harness.alarms import Alarms
from harness.metrics.text import distinct_n, longest_repeated_span

TOKENS, STEPS = 10_000_000, 10_000


def main() -> None:
    """Measures and prints."""
    random = np.random.default_rng(0)
    corpus = [random.integers(0, 32_000, 1000).astype(np.int32) for _ in range(TOKENS // 1000)]
    start = time.perf_counter()
    value = distinct_n(corpus, 3)
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"distinct_3 of {TOKENS:,} tokens: {value:.6f} in {seconds:.1f} s, at most {peak:.2f} GiB in this process")
    start = time.perf_counter()
    span = longest_repeated_span(random.integers(0, 4, 4096))
    print(f"longest repeated span of 4 096 tokens: {span} in {1e3 * (time.perf_counter() - start):.0f} ms")
    alarms, norms = Alarms(), random.random(STEPS) + 1
    start = time.perf_counter()
    for step, norm in enumerate(norms.tolist()):
        alarms.look(step, norm, 0.03, 1e-3, 1e-3)
    print(f"alarms: {(time.perf_counter() - start) / STEPS * 1e6:.1f} µs a step")


if __name__ == "__main__":
    main()

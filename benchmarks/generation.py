"""How fast text is written with keys and values kept, and without.

    python benchmarks/generation.py

Prints a table; never fails.
"""

import time

import mindspore as ms
import numpy as np

from harness.decoding import Decoding
from harness.models import PRESETS
from harness.trainer.cache import CachedDecoder, Memory
from harness.trainer.generate import NextLogits, Writer
from harness.trainer.model import Decoder

ROWS, SEQUENCE, TOKENS = 64, 128, 64


def best(do, times=3):
    """Shortest seconds of some, after one that compiles, and what came of it."""
    found, seconds = do(), []
    for _ in range(times):
        start = time.perf_counter()
        found = do()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def main() -> None:
    """Measures and prints."""
    ms.set_context(mode=ms.GRAPH_MODE)
    random = np.random.default_rng(0)
    model = Decoder(PRESETS["tiny"], SEQUENCE, seed=0)
    whole = NextLogits(model)
    whole.set_train(False)
    windows = random.integers(0, 256, (ROWS, SEQUENCE + 1)).astype(np.int32)
    choose = Decoding().choose
    writers = {
        "cache": Writer(whole, SEQUENCE, Memory(CachedDecoder(model, ROWS))),
        "no cache": Writer(whole, SEQUENCE),
    }
    times, texts = {}, {}
    for name, writer in writers.items():
        times[name], texts[name] = best(lambda writer=writer: writer.continuations(windows, TOKENS, 0, choose))
        print(f"{ROWS} × {TOKENS} tokens, tiny, {name}: {times[name]:.2f} s")
    same = (texts["cache"] == texts["no cache"]).mean()
    print(f"with the cache {times['no cache'] / times['cache']:.1f} × as fast; {same:.1%} of the tokens are the same")


if __name__ == "__main__":
    main()

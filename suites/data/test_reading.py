"""How fast rows come, by who reads them and with how many workers; what training gets of it."""

import pytest

from fixtures.scenarios import SHORT
from fixtures.texts import converted, lines
from harness import Scenario, hardware, untimed

ROWS = Scenario(model="nano", batch=16, sequence=128, eval_sequences=0)


@pytest.fixture(scope="module")
def root(pytestconfig):
    """Of the project."""
    return pytestconfig.rootpath


@pytest.fixture(scope="module")
def text(root):
    """Ten thousand records of a line each, read from memory."""
    return ROWS.replace(data=lines(root))


@pytest.fixture(scope="module")
def mindrecord(text, root):
    """The same rows in MindRecord."""
    return converted(text, root)


def rates(reader, *readings, rounds=5, batches=200):
    """Rows a second of each, the fastest of rounds in turn: what else goes on makes a reading slower, never faster."""
    found = [[reader.read(scenario, batches, *by).rate for scenario, *by in readings] for _ in range(rounds)]
    return [max(own) for own in zip(*found, strict=True)]


@hardware("cpu", "gpu", "ascend")
def test_mindrecord_reads_faster_than_lines_of_text(reader, text, mindrecord):
    """Feature: MindDataset against TextFileDataset, with one worker and with two.

    Expectation: MindDataset hands on rows that are numbers already, in its own threads; of text, Python must make
    numbers line by line. More rows a second: alone 2 times as many with one worker and 3 with two as measured; 1.2
    where others use the processors, since Python's threads then fight less for the interpreter.
    """
    one = rates(reader, (mindrecord,), (text, "TextFileDataset"))
    two = rates(reader, (mindrecord.replace(data_workers=2),), (text.replace(data_workers=2), "TextFileDataset"))
    assert one[0] > 1.05 * one[1], one
    assert two[0] > 1.05 * two[1], two


@hardware("cpu", "gpu", "ascend")
def test_python_workers_slow_down_rows_that_cost_nothing(reader, text):
    """Feature: rows from memory by one thread, two threads, two processes.

    Expectation: a row is a view that costs next to nothing. Two Python threads fight for the interpreter with the one
    that does nothing but take their rows (× 0.03 as measured), and from a process a row must be copied (× 0.16): more
    workers are for rows that are dear to make.
    """
    two = text.replace(data_workers=2)
    readings = [(text,), (two,), (two.replace(data_processes=True),)]
    one, threads, processes = rates(reader, *readings, batches=50)
    assert threads < 0.8 * one, (one, threads)
    assert processes < 0.8 * one, (one, processes)


@hardware("cpu", "gpu", "ascend")
def test_prefetching_keeps_readers_busy(reader, mindrecord):
    """Feature: MindDataset with two workers, each operation keeping 1 or 64 results ready.

    Expectation: with one, a reader waits for whoever takes its row (64 read twice as fast, as measured).
    """
    few, many = rates(reader, *((mindrecord.replace(data_workers=2, data_prefetch=n),) for n in (1, 64)))
    assert many > 1.1 * few, (few, many)


@hardware("cpu", "gpu", "ascend")
def test_reading_keeps_its_rate(reader, mindrecord, gate, benchmark):
    """Feature: the time of reading 300 batches of MindRecord, start of the pipeline included, by pytest-benchmark.

    Expectation: that of the baseline.
    """
    benchmark.pedantic(reader.read, args=(mindrecord, 300), rounds=8, warmup_rounds=1)
    gate.check_benchmark(benchmark, mindrecord)


@untimed
@hardware("cpu", "gpu", "ascend")
def test_mindrecord_trains_like_the_text_that_it_was_made_of(trainer, root):
    """Feature: a short text, from memory and from several shards, over epochs whose last batch is not full.

    Expectation: the same rows in the same order, so losses and the held-out perplexity are equal in every bit.
    """
    scenario = SHORT.replace(data="text:docs/architecture.md", batch=24, steps=20, eval_sequences=8)
    run = trainer.run(scenario)
    stored = trainer.run(converted(scenario, root, shard_size=3_160_000).replace(data_workers=2))
    assert stored.curve("loss") == run.curve("loss")
    assert stored["validation_perplexity"] == run["validation_perplexity"]
    assert stored.environment == run.environment


@hardware("cpu", "gpu", "ascend")
def test_training_does_not_wait_for_mindrecord(trainer, root):
    """Feature: share of the steady time that training waits, its rows in MindRecord, over many steps.

    Expectation: as from memory, a few percent at most, for the same losses.
    """
    plain = SHORT.replace(steps=60, eval_sequences=0)
    run = trainer.run(converted(plain, root).replace(data_workers=2))
    assert run["data_wait"] < 0.15
    assert run.curve("loss") == trainer.run(plain).curve("loss")

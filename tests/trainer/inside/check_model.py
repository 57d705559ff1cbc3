"""The decoder, evaluation and sampling, by real MindSpore operators."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from harness import Layout, Scenario
from harness.corpus import IGNORED
from harness.decoding import Decoding
from harness.models import PRESETS, ModelConfig
from harness.trainer.cache import CachedDecoder, Memory
from harness.trainer.evaluate import Evaluator, Scored, Scores
from harness.trainer.generate import NextLogits, Writer
from harness.trainer.model import Decoder, batch_statistics

CONFIG = ModelConfig(layers=2, width=16, heads=2, feed_forward=24)
TIED = ModelConfig(layers=2, width=16, heads=2, feed_forward=24, tied=True)
RANDOM = np.random.default_rng(3)


def evaluate(model, windows, rows):
    return Evaluator(Scored(model, Scores()), model.set_train, windows, rows)()


@pytest.mark.parametrize("name", ["nano", "tiny", "tiny-tied"])
def test_the_model_has_the_parameters_that_its_preset_promises(name):
    model = Decoder(PRESETS[name], 16, seed=0)
    assert sum(p.size for p in model.trainable_params()) == PRESETS[name].parameters
    assert len({p.name for p in model.trainable_params()}) == len(model.trainable_params())


def test_later_tokens_do_not_reach_back():
    model = Decoder(CONFIG, 12, seed=0)
    tokens = RANDOM.integers(0, 256, (2, 12)).astype(np.int32)
    changed = tokens.copy()
    changed[:, 7:] = 5
    one, other = (model(Tensor(t)).asnumpy() for t in (tokens, changed))
    assert one.shape == (2, 12, 256)
    assert np.array_equal(one[:, :7], other[:, :7])
    assert not np.allclose(one[:, 7:], other[:, 7:])


def test_order_of_tokens_matters():
    model = Decoder(CONFIG, 4, seed=0)
    one, other = (model(Tensor(np.array([t], np.int32))).asnumpy()[0, -1] for t in ([1, 2, 3, 4], [2, 1, 3, 4]))
    assert not np.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 3, 7, 16])
def test_evaluation_does_not_depend_on_the_batch_or_on_padding(rows):
    model = Decoder(CONFIG, 8, seed=0)
    windows = RANDOM.integers(0, 256, (7, 9)).astype(np.int32)
    windows[2, 5:] = IGNORED
    nll, tokens, correct = evaluate(model, windows, rows)
    whole, count, right = evaluate(model, windows, 7)
    assert correct == right
    assert tokens == count == 7 * 8 - 4
    assert nll == pytest.approx(whole, rel=1e-6)


def test_evaluation_equals_the_definition():
    model = Decoder(CONFIG, 8, seed=0)
    windows = RANDOM.integers(0, 256, (2, 9)).astype(np.int32)
    logits = model(Tensor(windows[:, :-1])).asnumpy().astype(np.float64)
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -np.take_along_axis(logits, windows[:, 1:, None], -1).sum()
    found = evaluate(model, windows, 2)
    assert found.nll == pytest.approx(expected, rel=1e-6)
    assert found.correct == (logits.argmax(-1) == windows[:, 1:]).sum()


def test_what_is_likeliest_counts_as_correct_and_padding_does_not():
    windows = np.array([[1, 2, 3, IGNORED], [1, 4, 4, 4]], np.int32)
    logits = np.zeros((2, 3, 8), np.float32)
    logits[..., 4] = 1.0
    logits[0, 0, 2] = 2.0
    _, tokens, correct = Scores()(Tensor(logits), Tensor(windows)).asnumpy()
    assert (tokens, correct) == (5, 4)


@pytest.mark.parametrize("length", [3, 20])
def test_continuations_are_those_of_decoding_one_by_one(length):
    """Also past the end of the sequence, where the oldest tokens are forgotten."""
    model = Decoder(CONFIG, 8, seed=0)
    windows = RANDOM.integers(0, 256, (2, 9)).astype(np.int32)

    def greedy(logits, draws):
        return logits.argmax(-1).astype(np.int32)

    written = Writer(NextLogits(model), 8).continuations(windows, length, seed=0, choose=greedy)
    text = windows[:, :2]
    for _ in range(length):
        seen = text[:, -8:]
        padded = np.zeros((2, 8), np.int32)
        padded[:, : seen.shape[1]] = seen
        logits = model(Tensor(padded)).asnumpy()[:, seen.shape[1] - 1]
        text = np.concatenate([text, logits.argmax(-1)[:, None].astype(np.int32)], axis=1)
    assert written.tolist() == text[:, 2:].tolist()


def test_continuations_depend_on_the_seed():
    model = Decoder(CONFIG, 8, seed=0)
    windows = RANDOM.integers(0, 256, (4, 9)).astype(np.int32)
    choose = Decoding().choose
    writer = Writer(NextLogits(model), 8)
    first, again, other = (writer.continuations(windows, 6, seed, choose).tolist() for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize("config", [CONFIG, TIED], ids=["plain", "tied"])
def test_cached_logits_are_those_of_the_whole_sequence(config):
    model = Decoder(config, 8, seed=0)
    tokens = RANDOM.integers(0, 256, (3, 8)).astype(np.int32)
    memory, whole = Memory(CachedDecoder(model, 3)), model(Tensor(tokens)).asnumpy()
    for filled in (1, 2, 5, 8):
        logits = memory.next_logits(tokens, filled).asnumpy()
        assert logits == pytest.approx(whole[:, filled - 1], rel=1e-4, abs=1e-6)


def test_a_cache_forgets_even_what_is_not_a_number():
    model = Decoder(CONFIG, 8, seed=0)
    tokens = RANDOM.integers(0, 256, (2, 8)).astype(np.int32)
    memory = Memory(CachedDecoder(model, 2))
    expected = memory.next_logits(tokens, 2).asnumpy()
    good = model.embedding.weight.asnumpy()
    model.embedding.weight.set_data(Tensor(np.full_like(good, np.nan)))
    memory.next_logits(tokens, 8)
    model.embedding.weight.set_data(Tensor(good))
    memory.forget()
    assert memory.next_logits(tokens, 2).asnumpy().tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("decoding", "length"), [(Decoding(0.0), 3), (Decoding(), 6), (Decoding(0.7, 20, 0.9), 6), (Decoding(), 9)]
)
def test_continuations_are_the_same_with_a_cache(decoding, length):
    """Also past the end of the sequence, where the cache is of no use any more."""
    model = Decoder(CONFIG, 8, seed=0)
    windows = RANDOM.integers(0, 256, (2, 9)).astype(np.int32)
    memory = Memory(CachedDecoder(model, 2))
    plain = Writer(NextLogits(model), 8).continuations(windows, length, 5, decoding.choose)
    for _ in range(2):
        cached = Writer(NextLogits(model), 8, memory).continuations(windows, length, 5, decoding.choose)
        assert cached.tolist() == plain.tolist()


def test_a_cache_keeps_the_names_of_the_models_parameters():
    model = Decoder(CONFIG, 8, seed=0)
    names = [parameter.name for parameter in model.trainable_params()]
    CachedDecoder(model, 2)
    assert [parameter.name for parameter in model.trainable_params()] == names


def test_seeds_give_other_models():
    one, other = (Decoder(CONFIG, 8, seed).embedding.weight.asnumpy() for seed in (0, 1))
    assert not np.array_equal(one, other)
    assert ms.get_context("mode") == ms.PYNATIVE_MODE


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"accumulation": 4}, "accumulation=4"), ({"layout": Layout(dp=2)}, "layout.dp=2"), ({}, None)],
)
def test_a_norm_over_rows_is_named_where_rows_are_split(changes, named):
    scenario = Scenario(model="mine:model", batch=8, **changes)
    (warning,) = batch_statistics(nn.SequentialCell(nn.Dense(4, 4), nn.BatchNorm1d(4)), scenario) or [None]
    assert (warning is None) == (named is None)
    if named:
        assert f"1 of model='mine:model' normalizes over the rows of a part: with {named} it does not" in warning
    assert batch_statistics(nn.SequentialCell(nn.Dense(4, 4), nn.LayerNorm([4])), scenario) == []

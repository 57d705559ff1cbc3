"""Which graphs have one key, and which must not."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from harness import Layout
from harness.models import ModelConfig
from harness.trainer.evaluate import Scored, Scores
from harness.trainer.graph_key import UnknownValueError, graph_key
from harness.trainer.loss import TokenLoss
from harness.trainer.model import Decoder, recompute
from harness.trainer.optimizer import SGD, AdamW, decays_of
from harness.trainer.parallel.data import Reduce
from harness.trainer.parallel.tensor import spread
from harness.trainer.step import Gradients, Update

SIZES = {"layers": 2, "width": 16, "heads": 2, "feed_forward": 24}


def decoder(sequence=8, seed=1, precision="float32", recomputed="none", **sizes):
    model = Decoder(ModelConfig(**{**SIZES, **sizes}), sequence, seed, precision)
    recompute(model, recomputed)
    return model


def gradients(scale=1.0, **changes):
    return Gradients(TokenLoss(decoder(**changes)), scale)


def update(optimizer=AdamW, decay=0.1, clip=1.0, scale=1.0, shares=1.0):
    weights = ms.ParameterTuple(decoder().trainable_params())
    counted = [shares] * len(weights)
    return Update(optimizer(weights, decays_of(weights, decay), counted), None, clip, scale, counted, 1.0)


def shard(rank, group="tp"):
    model = decoder()
    spread(model, 2, rank, group)
    return TokenLoss(model)


def reduce(group="dp", fused=True):
    return Reduce(ms.ParameterTuple(decoder().trainable_params()), group, fused)


def scored(train):
    model = decoder()
    model.set_train(train)
    return Scored(model, Scores())


DIFFERENT = {
    "gradients": lambda: gradients(),
    "scale": lambda: gradients(scale=0.5),
    "layers": lambda: gradients(layers=3),
    "width": lambda: gradients(width=32),
    "heads": lambda: gradients(heads=4),
    "feed-forward": lambda: gradients(feed_forward=32),
    "vocabulary": lambda: gradients(vocabulary=300),
    "tied": lambda: gradients(tied=True),
    "sequence": lambda: gradients(sequence=16),
    "precision": lambda: gradients(precision="float16"),
    "recomputed": lambda: gradients(recomputed="full"),
    "update": lambda: update(),
    "optimizer": lambda: update(optimizer=SGD),
    "decay": lambda: update(decay=0.2),
    "clip": lambda: update(clip=2.0),
    "loss scale": lambda: update(scale=2.0),
    "shares": lambda: update(shares=0.5),
    "first shard": lambda: shard(0),
    "second shard": lambda: shard(1),
    "another group": lambda: shard(0, "group"),
    "reduction": lambda: reduce(),
    "reduction in another group": lambda: reduce("pp"),
    "one by one": lambda: reduce(fused=False),
    "evaluation": lambda: scored(train=False),
    "training": lambda: scored(train=True),
}


def test_what_differs_in_one_thing_has_another_key():
    keys = {name: graph_key(make()) for name, make in DIFFERENT.items()}
    repeated = [name for name, key in keys.items() if list(keys.values()).count(key) > 1]
    assert not repeated


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_built_twice_has_one_key(name):
    assert graph_key(DIFFERENT[name]()) == graph_key(DIFFERENT[name]())


def test_values_of_parameters_are_no_part_of_a_key_and_those_of_tensors_are():
    assert graph_key(gradients(seed=1)) == graph_key(gradients(seed=2))
    changed = gradients()
    attention = changed.loss.model.blocks[1].attention
    attention.mask = Tensor(attention.mask.asnumpy() * np.float32(2))
    assert graph_key(changed) != graph_key(gradients())


@pytest.mark.parametrize("first", ["compiled", "not compiled"])
def test_having_been_compiled_changes_no_key(first):
    """A loaded graph leaves its Cells unparsed, so the key of evaluation must not depend on whether training was."""
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        model = decoder()
        training, evaluation = Gradients(TokenLoss(model), 1.0), Scored(model, Scores())
        if first == "compiled":
            training(Tensor(np.zeros((2, 9), np.int32)))
        fresh = decoder()
        assert graph_key(evaluation) == graph_key(Scored(fresh, Scores()))
        assert graph_key(training) == graph_key(Gradients(TokenLoss(fresh), 1.0))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


class Foreign(nn.Cell):
    """A Cell of unknown source."""

    def construct(self, x):
        """The same."""
        return x


def with_attribute(value):
    cell = gradients()
    cell.attribute = value
    return cell


def hooked():
    cell = gradients()
    cell.loss.model.norm.register_forward_hook(lambda cell, inputs, output: output)
    return cell


@pytest.mark.parametrize(
    "make",
    [
        Foreign,
        hooked,
        lambda: with_attribute(lambda x: x),
        lambda: with_attribute(np.array([object()])),
        lambda: with_attribute({"a": [Foreign()]}),
        lambda: with_attribute(object()),
    ],
    ids=["class", "hook", "function", "array", "nested", "object"],
)
def test_what_is_not_known_has_no_key(make):
    with pytest.raises(UnknownValueError):
        graph_key(make())


def test_pieces_of_text_do_not_run_together():
    assert graph_key("ab", "c") != graph_key("a", "bc")
    assert graph_key(["a"], "b") != graph_key(["a", "b"])
    assert len({graph_key(value) for value in (1, 1.0, True, "1", None, b"1", (1,), [1])}) == 8
    assert len({graph_key(Layout(dp=2)), graph_key(Layout(tp=2)), graph_key(Layout())}) == 3


def test_one_object_twice_is_not_two_that_are_equal():
    one, other = ops.MatMul(), ops.MatMul()
    assert graph_key([one, one]) != graph_key([one, other])
    assert graph_key(ops.MatMul(transpose_b=True)) != graph_key(ops.MatMul())

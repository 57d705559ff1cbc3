"""How a model is spread and cut. (That ranks together train what one process does, the suites show.)"""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor
from mindspore.communication import GlobalComm

from harness import Layout, Scenario
from harness.models import ModelConfig
from harness.schedule import interleaved, one_f_one_b
from harness.trainer.loss import CrossEntropy, TokenLoss
from harness.trainer.model import Decoder
from harness.trainer.parallel.explicit import Engine, Place
from harness.trainer.parallel.gather import Gather
from harness.trainer.parallel.groups import Groups
from harness.trainer.parallel.messages import Messages
from harness.trainer.parallel.norm import contributions
from harness.trainer.parallel.pipeline import Backward, Part, PipelineGradients, Stage, cut, message_shape
from harness.trainer.parallel.tensor import Passes, VocabularyCrossEntropy, spread, traffic
from harness.trainer.parallel.traffic import Collective
from harness.trainer.recorder import RECORDED_STEPS, Recorder

PLAIN = ModelConfig(layers=4, width=16, heads=2, feed_forward=24)
TIED = ModelConfig(layers=4, width=16, heads=2, feed_forward=24, tied=True)
RANDOM = np.random.default_rng(7)
WINDOWS = Tensor(RANDOM.integers(0, 256, (2, 9)).astype(np.int32))


def values(model):
    return {p.name: p.asnumpy() for p in model.trainable_params()}


@pytest.mark.parametrize("config", [PLAIN, TIED], ids=["plain", "tied"])
def test_the_shards_of_a_model_are_the_model(config):
    whole = values(Decoder(config, 8, seed=0))
    shards = [Decoder(config, 8, seed=0) for _ in range(2)]
    axes = [spread(model, 2, shard, "group") for shard, model in enumerate(shards)]
    assert axes[0] == axes[1]
    parts = [values(model) for model in shards]
    assert list(parts[0]) == list(whole)
    for name, value in whole.items():
        if name in axes[0]:
            assert np.array_equal(np.concatenate([part[name] for part in parts], axes[0][name]), value)
        else:
            assert "norm" in name
            assert np.array_equal(parts[1][name], value)


def test_a_spread_models_collectives_are_counted_by_its_cells():
    """Two sums a block and one of the embedding forward, two copies a block and one of the head backward."""
    model = Decoder(PLAIN, 8, seed=0)
    spread(model, 2, 0, "group")
    stream = Collective("AllReduce", 4 * 30 * 16)
    assert traffic(model, 30, 16, Passes(forward=1, backward=1)) == [stream] * (2 * (2 * 4 + 1))
    assert len(traffic(model, 30, 16, Passes(forward=3, backward=1))) == 4 * (2 * 4 + 1)


def test_a_backward_that_goes_forward_again_drops_the_last_sum():
    """As the profiler of MindSpore counts them (the nightly test beside this one looks)."""
    model = Decoder(PLAIN, 8, seed=0)
    spread(model, 2, 0, "group")
    first, last = (Part(model, number, 2, VocabularyCrossEntropy(2, number, "group")) for number in range(2))
    # Two blocks: four sums forward and four copies backward; the embedding's sum, or the head's copy and the loss's.
    assert len(traffic(first, 30, 16, Passes(1, 1))) == 2 * 4 + 1
    assert len(traffic(first, 30, 16, Passes(1, 1, again=1))) == 3 * 4 + 2 - 1
    assert len(traffic(last, 30, 16, Passes(1, 1))) == 2 * 4 + 1 + 3
    found = traffic(last, 30, 16, Passes(1, 1, again=1))
    assert len(found) == 3 * 4 + 1 + 2 * 3 - 1
    assert sum(each.size == 4 * 30 for each in found) == 2 * 2 - 1
    assert len(traffic(first, 30, 16, Passes(1, 1, recomputed=2))) == 2 * 4 + 1 + 2


@pytest.mark.parametrize("config", [PLAIN, TIED], ids=["plain", "tied"])
@pytest.mark.parametrize("schedule", [one_f_one_b(4, 1), interleaved(2, 2, 2)], ids=["stages", "chunks"])
def test_the_parts_of_a_model_compute_what_it_does(config, schedule):
    """Forward through all parts is the whole model's loss; backward through them its gradients."""
    model = Decoder(config, 8, seed=0)
    entropy = CrossEntropy()
    parts = {}
    for stage in range(schedule.stages):
        for chunk, part in enumerate(cut(model, schedule, stage, entropy)):
            parts[schedule.part(stage, chunk)] = part
    x = Tensor(np.zeros((2, 8, 16), np.float32))
    inputs = []
    for number in range(schedule.parts):
        inputs.append(x)
        x = parts[number](x, WINDOWS)
    loss = TokenLoss(model)
    nll, tokens = loss(WINDOWS)
    assert float(x[0].asnumpy()) == pytest.approx(float(nll.asnumpy()), rel=1e-6)
    assert float(x[1].asnumpy()) == float(tokens.asnumpy())
    weights = ms.ParameterTuple(model.trainable_params())
    expected = ms.grad(lambda windows: loss(windows)[0], None, weights)(WINDOWS)
    found = gradients(parts, inputs)
    for weight, gradient in zip(weights, expected, strict=True):
        assert found[weight.name] == pytest.approx(gradient.asnumpy(), rel=1e-3, abs=1e-5)


def gradients(parts, inputs):
    """By both halves of a split backward, last part first; a tied embedding's are added up, as between its ends."""
    found = {}
    dy = Tensor(np.zeros((2, 8, 16), np.float32))
    for number in reversed(range(len(parts))):
        part = parts[number]
        zeros = [Tensor(np.zeros(p.shape, np.float32)) for p in part.trainable_params()]
        own = Backward(part, 1.0, for_input=False, for_weights=True)(inputs[number], WINDOWS, dy, *zeros)
        for weight, gradient in zip(part.trainable_params(), own, strict=True):
            found[weight.name] = found.get(weight.name, 0.0) + gradient.asnumpy()
        if number:
            dy = Backward(part, 1.0, for_input=True, for_weights=False)(inputs[number], WINDOWS, dy)[0]
    return found


def test_a_backward_adds_to_what_it_is_given():
    part = Part(Decoder(PLAIN, 8, seed=0), 0, 2, CrossEntropy())
    x, dy = Tensor(np.zeros((2, 8, 16), np.float32)), Tensor(np.ones((2, 8, 16), np.float32))
    zeros = [Tensor(np.zeros(p.shape, np.float32)) for p in part.trainable_params()]
    once = Backward(part, 1.0, True, True)(x, WINDOWS, dy, *zeros)
    twice = Backward(part, 1.0, True, True)(x, WINDOWS, dy, *once)
    assert len(once) == len(zeros)
    for a, b in zip(once, twice, strict=True):
        assert b.asnumpy() == pytest.approx(2 * a.asnumpy(), rel=1e-5, abs=1e-7)


def test_what_stages_send_is_one_micro_batch():
    scenario = Scenario(batch=48, sequence=8, accumulation=2, micro_batches=3, layout=Layout(dp=2, pp=2))
    assert message_shape(scenario, PLAIN) == (4, 8, 16)


def test_a_stage_sends_what_its_program_says_recorded_or_not():
    """Stage 0 sends three micro-batches forward, stage 1 three gradients back, from the first step on."""
    model, schedule = Decoder(PLAIN, 8, seed=0), one_f_one_b(2, 3)
    for number in range(2):
        stage = Stage(cut(model, schedule, number, CrossEntropy()), schedule, number, rank_of=int)
        gradients = PipelineGradients(stage, 1.0, Messages((2, 8, 16), Recorder()), Recorder())
        assert gradients.traffic() == [Collective("Send", 4 * 2 * 8 * 16)] * 3


def test_every_value_of_a_model_is_contributed_once():
    """Over two shards: those that are cut by each shard's own, those that are copied by halves."""
    model = Decoder(PLAIN, 8, seed=0)
    sizes = {p.name: p.size for p in model.trainable_params()}
    axes = spread(model, 2, 0, "group")
    parameters = model.trainable_params()
    counted = sum(2 * share * p.size for share, p in zip(contributions(parameters, axes, 2), parameters, strict=True))
    assert counted == sum(sizes.values())


def test_a_gather_among_some_ranks_on_cpu_adds_up():
    among_all, among_some = Gather(GlobalComm.WORLD_COMM_GROUP, 0, 2), Gather("tensor-0-1", 1, 2)
    assert among_all.traffic(100) == Collective("AllGather", 100)
    assert among_some.traffic(100) == Collective("AllReduce", 200)


def test_the_recorder_keeps_the_last_steps():
    recorder = Recorder()
    with recorder.span("compute", "before the first step"):
        pass
    for step in range(1, RECORDED_STEPS + 3):
        recorder.begin(step)
        with recorder.span("send", f"F{step}", peer=1, size=8):
            pass
    steps = [event.step for event in recorder.events]
    assert steps == list(range(3, RECORDED_STEPS + 3))
    assert all(event.end >= event.start and event.size == 8 for event in recorder.events)


def test_an_engine_holds_its_parameters():
    scenario = Scenario(model="nano", batch=2, sequence=8)
    engine = Engine(Decoder(PLAIN, 8, seed=0), scenario, Place.of(scenario, 0, Groups()))
    held = engine.held()
    assert sum(h.size for h in held) == PLAIN.parameters
    assert {(h.shard, h.shards) for h in held} == {(0, 1)}
    assert engine.traffic() == []
    assert engine.in_flight_memory is None

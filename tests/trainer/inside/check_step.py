"""Known answers of the training step, computed by real MindSpore operators."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.communication import GlobalComm

from harness import Layout, Scenario
from harness.corpus import IGNORED
from harness.models import ModelConfig
from harness.trainer.loss import TokenLoss
from harness.trainer.model import Decoder, recompute
from harness.trainer.optimizer import SGD, AdamW, decays_of, learning_rate, sum_of_squares
from harness.trainer.parallel.data import Reduce, share
from harness.trainer.parallel.explicit import Engine, Place
from harness.trainer.parallel.groups import Groups
from harness.trainer.parallel.norm import contributions
from harness.trainer.parallel.traffic import Collective
from harness.trainer.recorder import Recorder
from harness.trainer.step import TrainStep, Update, as_tensor

ONE = ModelConfig(layers=1, width=16, heads=2, feed_forward=24)
THREE = ModelConfig(layers=3, width=16, heads=2, feed_forward=24)
WORLD = GlobalComm.WORLD_COMM_GROUP
RANDOM = np.random.default_rng(5)
WINDOWS = RANDOM.integers(0, 256, (8, 9)).astype(np.int32)


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "pynative"])
def mode(request):
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def parameters(*values):
    cells = [Parameter(Tensor(np.array(v, np.float32)), name=f"p{i}") for i, v in enumerate(values)]
    return ms.ParameterTuple(cells)


def scalar(value):
    return Tensor(value, ms.float32)


@pytest.mark.usefixtures("mode")
def test_adam_keeps_its_moments():
    """Ten steps with gradient 1, then one with 0: the update is 0.896188 of the rate; dropped moments give 0."""
    weights = parameters([0.0])
    adam = AdamW(weights, [0.0])
    for step in range(1, 11):
        adam(scalar(1e-3), scalar(step), scalar(1.0), (Tensor([1.0], ms.float32),))
    before = weights[0].asnumpy().copy()
    squares = adam(scalar(1e-3), scalar(11), scalar(1.0), (Tensor([0.0], ms.float32),))
    assert (before - weights[0].asnumpy())[0] / 1e-3 == pytest.approx(0.896188, rel=1e-4)
    assert float(squares.asnumpy()) == pytest.approx(0.896188e-3**2, rel=1e-3)


@pytest.mark.usefixtures("mode")
def test_adam_equals_its_formula_with_decay():
    start = RANDOM.normal(size=(3, 4)).astype(np.float32)
    weights = parameters(start)
    adam = AdamW(weights, decays_of(weights, 0.1))
    expected, first, second = start.astype(np.float64), 0.0, 0.0
    for step in range(1, 6):
        gradient = RANDOM.normal(size=(3, 4)).astype(np.float32)
        adam(scalar(1e-2), scalar(step), scalar(0.5), (Tensor(gradient),))
        first = 0.9 * first + 0.1 * (0.5 * gradient)
        second = 0.999 * second + 0.001 * (0.5 * gradient) ** 2
        moved = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        expected = expected - 1e-2 * (moved + 0.1 * expected)
    assert weights[0].asnumpy() == pytest.approx(expected, rel=1e-4)


def test_norms_do_not_decay():
    weights = parameters([1.0, 1.0], [[1.0]])
    SGD(weights, decays_of(weights, 0.5))(scalar(1.0), scalar(1), scalar(1.0), (Tensor([0.0, 0.0]), Tensor([[0.0]])))
    assert weights[0].asnumpy().tolist() == [1.0, 1.0]
    assert weights[1].asnumpy().tolist() == [[0.5]]


class AddOther(nn.Cell):
    """Stands for the AllReduce: adds the other rank's sums, which are known here."""

    def __init__(self, *other):
        super().__init__(auto_prefix=False)
        self.traffic = list
        self.other = [Tensor(np.array(x, np.float32)) for x in other]

    def construct(self, *sums):
        return tuple([sums[i] + self.other[i] for i in range(len(self.other))])


class Agreement(nn.Cell):
    """Adds what the other ranks of a replica would, where it is asked for the sums before an update."""

    def __init__(self, others):
        super().__init__(auto_prefix=False)
        self.others = Tensor(np.array(others, np.float32))

    def construct(self, values):
        return values + self.others if values.shape[0] == 3 else values


class Given:
    """Sums that are known."""

    def __init__(self, *sums):
        self.sums = [Tensor(np.array(x, np.float32)) for x in sums]

    def __call__(self, windows):
        return tuple(self.sums)

    def set_train(self, mode=True):
        pass


@pytest.mark.usefixtures("mode")
def test_clipping_comes_after_the_reduction():
    """g₀ = (3, 4), g₁ = (−3, 4), norm at most 1, mean over both: (0, 1); clipping first would give (0, 0.8)."""
    weights = parameters([0.0, 0.0])
    update = Update(SGD(weights, decays_of(weights, 0.0)), None, clip_norm=1.0, scale=1.0)
    step = TrainStep(Given(0.0, 1.0, [3.0, 4.0]), [AddOther(0.0, 1.0, [-3.0, 4.0])], update, 1, Recorder())
    _, norm, moved = step(as_tensor(WINDOWS), 1.0, 1)
    assert -weights[0].asnumpy() == pytest.approx([0.0, 1.0], abs=1e-5)
    assert norm == pytest.approx(4.0)
    assert moved == pytest.approx(1.0, abs=1e-5)
    step(as_tensor(WINDOWS), 1.0, 2)
    assert step.tokens_seen == 4


def norm_of(gradients, shares, others):
    """The norm that an update comes to when the other ranks of its replica contribute a sum of squares."""
    weights = parameters(*([0.0] * len(g) for g in gradients))
    agree = Agreement([0.0, 0.0, others])
    update = Update(SGD(weights, decays_of(weights, 0.0), shares), agree, None, 1.0, shares)
    sums = [Tensor(np.array(g, np.float32)) for g in gradients]
    _, norm, _, _ = update(scalar(1.0), scalar(1), scalar(0.0), scalar(1.0), *sums)
    return float(norm.asnumpy())


@pytest.mark.usefixtures("mode")
def test_the_norm_counts_each_value_once():
    """Shards of 9 in all and one copy of 16 on each of 8 ranks: 5. Four shards of norm 3: 6. A tied pair: √800."""
    weights = parameters([0.0, 0.0], [0.0])
    shares = contributions(weights, {"p0"}, 8)
    assert shares == [1.0, 1 / 8]
    assert norm_of([[1.0, 1.0], [4.0]], shares, others=7 + 7 * 16 / 8) == pytest.approx(5.0)
    assert norm_of([[3.0]], [1.0], others=27) == pytest.approx(6.0)
    first, last = contributions(weights, {"p0"}, 2), contributions(weights, {"p0"}, 2, {"p0"})
    assert (first, last) == ([1.0, 0.5], [0.0, 0.5])
    assert norm_of([[20.0, 20.0]], first[:1], others=0.0) == pytest.approx(28.284, rel=1e-4)
    assert norm_of([[20.0, 20.0]], last[:1], others=800.0) == pytest.approx(28.284, rel=1e-4)


class Fixed(nn.Cell):
    """Logits that give each row a loss of our choice: the target's logit against 255 zeros."""

    def __init__(self, losses):
        super().__init__(auto_prefix=False)
        target = [np.log(255 / (np.exp(loss) - 1)) for loss in losses]
        logits = np.zeros((len(losses), 256), np.float32)
        logits[:, 0] = target
        self.bias = Parameter(Tensor(logits), name="bias")

    def construct(self, tokens):
        rows, columns = tokens.shape
        return ops.broadcast_to(self.bias.reshape(rows, 1, 256), (rows, columns, 256))


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize(("losses", "counts", "expected"), [([1.0, 3.0], [2, 6], 2.5), ([9.0, 2.0], [0, 4], 2.0)])
def test_the_loss_of_a_step_weighs_tokens(losses, counts, expected):
    windows = np.full((2, 7), IGNORED, np.int32)
    for row, count in enumerate(counts):
        windows[row, : count + 1] = 0
        windows[row, 0] = 0
    nll, tokens = TokenLoss(Fixed(losses))(as_tensor(windows))
    assert float(tokens.asnumpy()) == sum(counts)
    assert float(nll.asnumpy()) / sum(counts) == pytest.approx(expected, rel=1e-5)


def step_of(model, scenario):
    return Engine(model, scenario, Place.of(scenario, 0, Groups())).step


@pytest.mark.usefixtures("mode")
def test_a_step_without_tokens_is_finite():
    model = Decoder(ONE, 8, seed=0)
    step = step_of(model, Scenario(steps=1, batch=2, sequence=8))
    loss, norm, _ = step(as_tensor(np.full((2, 9), IGNORED, np.int32)), 1e-3, 1)
    assert (loss, norm) == (0.0, 0.0)


def run_steps(scenario, windows=WINDOWS, steps=3, config=ONE):
    model = Decoder(config, scenario.sequence, seed=0, precision=scenario.precision)
    recompute(model, scenario.recompute)
    step = step_of(model, scenario)
    return [step(as_tensor(windows), 1e-2, i) for i in range(1, steps + 1)]


BASE = Scenario(steps=3, batch=8, sequence=8)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("parts", [2, 8])
def test_accumulation_equals_the_whole_batch_also_with_uneven_tokens(parts):
    windows = WINDOWS.copy()
    windows[0, 3:] = IGNORED
    windows[5:7] = IGNORED
    whole = run_steps(BASE, windows)
    assert run_steps(BASE.replace(accumulation=parts), windows) == [pytest.approx(values, rel=1e-4) for values in whole]


def test_identical_parts_accumulate_to_one_of_them():
    """Four times the same part: the gradient of one, not four times and not a quarter of it."""
    part = WINDOWS[:2]
    once = run_steps(BASE.replace(batch=2), part)
    four = run_steps(BASE.replace(accumulation=4), np.tile(part, (4, 1)))
    assert four == [pytest.approx(values, rel=1e-4) for values in once]


def test_recompute_changes_no_bit():
    ms.set_context(mode=ms.GRAPH_MODE)
    plain = run_steps(BASE, config=THREE)
    assert run_steps(BASE.replace(recompute="full"), config=THREE) == plain
    assert run_steps(BASE.replace(recompute="middle"), config=THREE) == plain
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_float16_products_stay_close_and_their_norm_is_finite():
    exact, half = run_steps(BASE), run_steps(BASE.replace(precision="float16"))
    assert [h[0] for h in half] == pytest.approx([e[0] for e in exact], rel=2e-3)
    assert [h[1] for h in half] == pytest.approx([e[1] for e in exact], rel=2e-2)


def test_a_float16_gradient_of_256_has_norm_256():
    gradient = Tensor(np.array([256.0]), ms.float16)
    assert float(ops.sqrt(sum_of_squares(ops.cast(gradient, ms.float32))).asnumpy()) == 256.0


@pytest.mark.parametrize("size", [1, 1000, 2**16, 2**16 + 1, 2**25])
def test_sums_of_squares_are_exact_at_any_size(size):
    """Equal values are the worst case, since every rounding goes the same way; ops.L2Loss is far off at 2²⁵."""
    values = np.full(size, 0.01, np.float32)
    expected = size * float(np.float32(0.01)) ** 2
    assert float(sum_of_squares(Tensor(values)).asnumpy()) == pytest.approx(expected, rel=1e-5)


def test_a_fused_reduction_is_one_call_and_an_unfused_one_a_parameter():
    weights = parameters([1.0], [[1.0, 2.0], [3.0, 4.0]])
    assert Reduce(weights, WORLD).traffic() == [Collective("AllReduce", 4 * (2 + 1 + 4))]
    assert Reduce(weights, WORLD, fused=False).traffic() == [Collective("AllReduce", 4 * size) for size in (2, 1, 4)]


def test_what_is_sent_does_not_grow_with_accumulation():
    def sent(**changes):
        scenario = Scenario(steps=1, batch=8, sequence=8, layout=Layout(dp=2), **changes)
        return Engine(Decoder(ONE, 8, 0), scenario, Place.of(scenario, 0, Groups(data=WORLD))).traffic()

    assert sent(accumulation=4) == sent()
    assert len(sent(fused_reduction=False)) == 1 + len(Decoder(ONE, 8, 0).trainable_params())


def test_shares_together_are_the_batch():
    rows = np.arange(12)[:, None]
    assert np.concatenate([share(rows, 3, i) for i in range(3)]).tolist() == rows.tolist()


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 0.75, 0.5, 0.25, 0]),
        ("cosine", [0.5, 1, 0.868, 0.55, 0.232, 0.1]),
    ],
)
def test_learning_rate_schedules(schedule, expected):
    scenario = Scenario(steps=6, warmup_steps=2, learning_rate=1.0, schedule=schedule)
    assert [learning_rate(scenario, i) for i in range(1, 7)] == pytest.approx(expected, abs=1e-3)


def test_a_schedule_that_is_all_warm_up():
    scenario = Scenario(steps=2, warmup_steps=2, learning_rate=1.0, layout=Layout())
    assert [learning_rate(scenario, i) for i in (1, 2)] == [0.5, 1.0]

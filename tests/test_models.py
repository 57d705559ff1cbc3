import pytest

from harness.errors import ScenarioError
from harness.models import PRESETS, ModelConfig, sizes_of


@pytest.mark.parametrize(("name", "millions"), [("tiny", 0.92), ("small", 25.6), ("7b", 6738.4), ("13b", 13015.9)])
def test_presets_have_the_size_of_their_name(name, millions):
    assert PRESETS[name].parameters / 1e6 == pytest.approx(millions, rel=5e-3)


def test_a_tied_model_has_no_head():
    assert PRESETS["tiny"].parameters - PRESETS["tiny-tied"].parameters == 128 * 256


def test_refuses_sizes_that_cannot_work():
    with pytest.raises(ScenarioError, match="width 10 is not a multiple"):
        ModelConfig(layers=1, width=10, heads=4, feed_forward=8)
    with pytest.raises(ScenarioError, match="vocabulary 100"):
        ModelConfig(layers=1, width=8, heads=2, feed_forward=8, vocabulary=100)


def test_sizes_of_ones_own():
    plain = "decoder:layers=3,width=48,heads=6,feed_forward=64"
    assert sizes_of(plain) == ModelConfig(layers=3, width=48, heads=6, feed_forward=64)
    assert sizes_of(f"{plain},tied=1,vocabulary=512").tied
    assert sizes_of("tiny") == PRESETS["tiny"]
    assert sizes_of("package.module:function") is None


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("decoder:", "'' is no size; sizes are layers, width"),
        ("decoder:layers=3,width=48,heads=6,depth=2", "'depth=2' is no size"),
        ("decoder:layers=0,width=48,heads=6,feed_forward=64", "'layers=0' is no size"),
        ("decoder:layers=x,width=48,heads=6,feed_forward=64", "'layers=x' is no size"),
        ("decoder:layers=3,width=48,feed_forward=64", "lacks heads"),
        ("decoder:layers=3,width=10,heads=4,feed_forward=64", "width 10 is not a multiple"),
    ],
)
def test_sizes_that_are_none_are_refused(model, message):
    with pytest.raises(ScenarioError, match=message):
        sizes_of(model)

"""Hypothesis strategies for the harness's own types."""

from hypothesis import strategies as st

from harness import Layout, Scenario
from harness.models import PRESETS
from harness.scenario import CHOICES

layouts = st.builds(
    Layout, dp=st.integers(1, 4), tp=st.integers(1, 4), pp=st.integers(1, 2), optimizer_sharding=st.just(False)
)


def _fits(model: str, layout: Layout) -> bool:
    preset = PRESETS.get(model)
    sizes = (preset.heads, preset.feed_forward, preset.vocabulary) if preset else ()
    return preset is None or (not any(size % layout.tp for size in sizes) and preset.layers % layout.pp == 0)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Any valid scenario."""
    model = draw(st.sampled_from([*PRESETS, "package.module:function"]))
    layout = draw(layouts.filter(lambda found: _fits(model, found)))
    accumulation = draw(st.integers(1, 4))
    micro_batches = draw(st.integers(1, 4)) if layout.pp > 1 else 1
    steps = draw(st.integers(1, 1000))
    eval_sequences = draw(st.integers(0, 100))
    rate = st.floats(0, 10, allow_nan=False)
    choices = {name: draw(st.sampled_from(choices)) for name, choices in CHOICES.items()}
    choices["engine"] = "explicit"
    choices["bad_records"] = "fail"
    in_graph = choices["mode"] == "graph"
    choices["execution_order"] = choices["execution_order"] if in_graph else "ready"
    choices["pipeline_schedule"] = draw(st.sampled_from(["gpipe", "1f1b", "zero_bubble"])) if layout.pp > 1 else "1f1b"
    return Scenario(
        model=model,
        data=draw(st.sampled_from(["text", "markov", "text:prose.txt"])),
        steps=steps,
        batch=layout.dp * accumulation * micro_batches * draw(st.integers(1, 8)),
        sequence=draw(st.integers(2, 4096)),
        accumulation=accumulation,
        micro_batches=micro_batches,
        learning_rate=draw(rate),
        weight_decay=draw(rate),
        clip_norm=draw(st.none() | st.floats(1e-3, 10)),
        warmup_steps=draw(st.integers(0, steps)),
        fused_reduction=draw(st.booleans()) if layout.dp > 1 else True,
        layout=layout,
        seed=draw(st.integers(0, 2**31)),
        eval_every=draw(st.integers(0, min(100, steps))) if eval_sequences else 0,
        eval_sequences=eval_sequences,
        samples=draw(st.integers(0, 64)),
        sample_tokens=draw(st.integers(1, 256)),
        temperature=draw(st.floats(0, 2)),
        top_k=draw(st.integers(0, 300)),
        top_p=draw(st.floats(0.1, 1.0)),
        graph_kernel=draw(st.booleans()) if in_graph else False,
        compile_cache=draw(st.booleans()) if in_graph else False,
        **choices,
    )

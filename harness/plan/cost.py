"""How long a step of a layout would take."""

from dataclasses import dataclass

from harness.metrics.speed import step_flops
from harness.plan.memory import FLOAT32, recomputed, sizes, stage_parameters
from harness.plan.profile import Profile
from harness.scenario import Scenario
from harness.schedule import bubble_ratio, replay, schedule_of


@dataclass(frozen=True)
class Traffic:
    """Collectives or messages of one purpose in a step of the busiest device."""

    purpose: str
    kind: str
    calls: int
    bytes: float
    """What the device gives to one call."""

    seconds: float
    """Of all calls."""


@dataclass(frozen=True)
class Cost:
    """One step, in seconds."""

    compute: float
    """Of the slowest stage, without waiting."""

    bubble_ratio: float
    """Share of the pipeline's time in which its stages wait for each other."""

    traffic: tuple[Traffic, ...]
    exposed: float
    """Communication that no computing hides."""

    step_time: float
    tokens: int
    """Of one step."""

    @property
    def communication_share(self) -> float:
        """Exposed communication as a share of the step."""
        return self.exposed / self.step_time

    @property
    def throughput(self) -> float:
        """Tokens a second, of all devices together."""
        return self.tokens / self.step_time


def cost(scenario: Scenario, profile: Profile) -> Cost:
    """What a step takes: computing, stretched by the pipeline's bubble, and what of communication nothing hides.

    The explicit engine hides nothing. MindSpore's own engine reduces gradients while backward, two thirds of the
    computing, goes on.
    """
    compute, bubble = _compute(scenario, profile), _bubble(scenario)
    tensor, pipeline, data = _tensor(scenario, profile), _pipeline(scenario, profile), _data(scenario, profile)
    within = sum(each.seconds for each in tensor)
    # A stage hands over and goes on: of all its messages, one each way is waited for.
    within += sum(each.seconds / each.calls * min(each.calls, 2) for each in pipeline)
    ends = _tied_ends(scenario, profile)
    at_end = sum(each.seconds for each in (*data, *ends))
    if scenario.engine != "explicit":
        at_end = max(0.0, at_end - 2 / 3 * compute)
    step = (compute + within) / (1 - bubble) + at_end
    return Cost(compute, bubble, (*tensor, *pipeline, *data, *ends), within + at_end, step, scenario.tokens_per_step)


def ring_time(kind: str, size: float, ranks: int, bandwidth: float, latency: float) -> float:
    """Seconds of one collective by a ring (Patarasuk & Yuan 2009): 2(n − 1) steps for an AllReduce, n − 1 for a gather.

    Args:
        kind: ``AllReduce``, ``AllGather`` (of ``size`` bytes in all), or ``Send``.
        size: bytes.
        ranks: that take part.
        bandwidth: bytes a second.
        latency: seconds of a message.
    """
    if kind == "Send":
        return size / bandwidth + latency
    rounds = (2 if kind == "AllReduce" else 1) * (ranks - 1)
    return rounds * (size / ranks / bandwidth + latency)


def _compute(scenario: Scenario, profile: Profile) -> float:
    model, layout = sizes(scenario), scenario.layout
    whole = step_flops(model, scenario.batch, scenario.sequence)
    head = 6.0 * scenario.tokens_per_step * model.width * model.vocabulary
    layers = model.layers // layout.pp
    # One more forward pass is a third of forward and backward together.
    if _goes_forward_again(scenario):
        passes = 2 if scenario.pipeline_schedule == "zero_bubble" else 1
        blocks, head = (whole - head) / layout.pp * (1 + passes / 3), head * (1 + passes / 3)
    else:
        again = max(recomputed(scenario, stage, layers) for stage in range(layout.pp))
        blocks = (whole - head) / layout.pp * (1 + again / layers / 3)
    return (blocks + head) / (layout.dp * layout.tp) / profile.flops


def _goes_forward_again(scenario: Scenario) -> bool:
    """Whether a stage keeps its inputs alone, so that its backward begins with its forward."""
    return scenario.layout.pp > 1 and scenario.engine == "explicit"


def _bubble(scenario: Scenario) -> float:
    layout = scenario.layout
    if scenario.pipeline_schedule == "zero_bubble":
        return replay(schedule_of(scenario)).bubble_ratio
    return bubble_ratio(layout.pp, scenario.micro_batches, scenario.chunks)


def _bandwidth(profile: Profile, span: int) -> float:
    """Between ranks whose numbers lie within ``span`` of each other."""
    return profile.node_bandwidth if span <= profile.node_devices else profile.network_bandwidth


def _tensor(scenario: Scenario, profile: Profile) -> list[Traffic]:
    layout = scenario.layout
    if layout.tp == 1:
        return []
    calls = scenario.accumulation * scenario.micro_batches * max(_sums(scenario, stage) for stage in range(layout.pp))
    size = _stream(scenario)
    once = ring_time("AllReduce", size, layout.tp, _bandwidth(profile, layout.tp), profile.latency)
    return [Traffic("tensor parallel", "AllReduce", calls, size, calls * once)]


def _sums(scenario: Scenario, stage: int) -> int:
    """Sums of the residual stream over a stage's shards, of one micro-batch: two a block and direction (Megatron-LM).

    The embedding has one forward, the head one backward; a block that is computed again has one, since its own output
    is not needed; nor is that of a stage that goes forward again.
    """
    layout = scenario.layout
    layers = sizes(scenario).layers // layout.pp
    is_first, is_last = stage == 0, stage == layout.pp - 1
    backward = 2 if scenario.pipeline_schedule == "zero_bubble" and not is_first else 1
    again = backward if _goes_forward_again(scenario) else 0
    forward = (1 + again) * (2 * layers + is_first) - again * (not is_last)
    return forward + backward * (2 * layers + is_last + recomputed(scenario, stage, layers))


def _pipeline(scenario: Scenario, profile: Profile) -> list[Traffic]:
    layout = scenario.layout
    if layout.pp == 1:
        return []
    size = _stream(scenario)
    # A stage between others sends each chunk's output on and each chunk's gradient back; at both ends one is missing.
    sends = 2 * scenario.chunks - (layout.pp == 2)
    calls = sends * scenario.micro_batches * scenario.accumulation
    once = ring_time("Send", size, 2, _bandwidth(profile, layout.world_size), profile.latency)
    return [Traffic("pipeline", "Send", calls, size, calls * once)]


def _stream(scenario: Scenario) -> float:
    """Bytes of a micro-batch's residual stream."""
    return float(FLOAT32 * scenario.micro_batch_rows * scenario.sequence * sizes(scenario).width)


def _tied_ends(scenario: Scenario, profile: Profile) -> list[Traffic]:
    """The gradient of a table that the first stage reads and the last one multiplies by."""
    model, layout = sizes(scenario), scenario.layout
    if layout.pp == 1 or not model.tied:
        return []
    size = float(FLOAT32 * model.vocabulary * model.width // layout.tp)
    once = ring_time("AllReduce", size, 2, _bandwidth(profile, layout.world_size), profile.latency)
    return [Traffic("tied embedding", "AllReduce", 1, size, once)]


def _data(scenario: Scenario, profile: Profile) -> list[Traffic]:
    layout = scenario.layout
    if layout.dp == 1:
        return []
    size = float(FLOAT32 * max(stage_parameters(scenario, stage) for stage in range(layout.pp)))
    bandwidth = _bandwidth(profile, layout.dp * layout.tp)

    def once(kind: str) -> float:
        return ring_time(kind, size, layout.dp, bandwidth, profile.latency)

    found = [Traffic("gradients", "AllReduce", 1, size, once("AllReduce"))]
    if layout.optimizer_sharding:
        found.append(Traffic("optimizer sharding", "AllGather", 1, size / layout.dp, once("AllGather")))
    return found

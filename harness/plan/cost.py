"""How long a step of a layout would take."""

from dataclasses import dataclass

from harness.metrics.speed import step_flops
from harness.plan.memory import FLOAT32, sizes, stage_parameters
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
    compute = _compute(scenario, profile)
    traffic = _tensor(scenario, profile) + _pipeline(scenario, profile) + _data(scenario, profile)
    within = sum(each.seconds for each in traffic if each.purpose in ("tensor parallel", "pipeline"))
    at_end = sum(each.seconds for each in traffic) - within
    if scenario.engine != "explicit":
        at_end = max(0.0, at_end - 2 / 3 * compute)
    bubble = _bubble(scenario)
    step = (compute + within) / (1 - bubble) + at_end
    return Cost(compute, bubble, tuple(traffic), within + at_end, step, scenario.tokens_per_step)


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
    blocks = (whole - head) / layout.pp
    # One more forward pass is a third of forward and backward together.
    if layout.pp > 1 and scenario.engine == "explicit":
        again = 2 if scenario.pipeline_schedule == "zero_bubble" else 1
        blocks, head = blocks * (1 + again / 3), head * (1 + again / 3)
    elif scenario.recompute != "none":
        share = 1.0 if scenario.recompute == "full" or layout.pp > 1 else max(0, model.layers - 2) / model.layers
        blocks *= 1 + share / 3
    return (blocks + head) / (layout.dp * layout.tp) / profile.flops


def _bubble(scenario: Scenario) -> float:
    layout = scenario.layout
    if scenario.pipeline_schedule == "zero_bubble":
        return replay(schedule_of(scenario)).bubble_ratio
    return bubble_ratio(layout.pp, scenario.micro_batches, scenario.chunks)


def _bandwidth(profile: Profile, span: int) -> float:
    """Between ranks whose numbers lie within ``span`` of each other."""
    return profile.node_bandwidth if span <= profile.node_devices else profile.network_bandwidth


def _tensor(scenario: Scenario, profile: Profile) -> list[Traffic]:
    model, layout = sizes(scenario), scenario.layout
    if layout.tp == 1:
        return []
    tokens = scenario.micro_batch_rows * scenario.sequence
    layers = model.layers // layout.pp
    again = (scenario.recompute != "none" or (layout.pp > 1 and scenario.engine == "explicit")) * layers
    calls = (4 * layers + 2 // layout.pp + again) * scenario.accumulation * scenario.micro_batches
    size = float(FLOAT32 * tokens * model.width)
    once = ring_time("AllReduce", size, layout.tp, _bandwidth(profile, layout.tp), profile.latency)
    return [Traffic("tensor parallel", "AllReduce", calls, size, calls * once)]


def _pipeline(scenario: Scenario, profile: Profile) -> list[Traffic]:
    layout = scenario.layout
    if layout.pp == 1:
        return []
    size = float(FLOAT32 * scenario.micro_batch_rows * scenario.sequence * sizes(scenario).width)
    directions = 1 if layout.pp == 2 and scenario.chunks == 1 else 2
    calls = directions * scenario.chunks * scenario.micro_batches * scenario.accumulation
    once = ring_time("Send", size, 2, _bandwidth(profile, layout.world_size), profile.latency)
    # A stage hands over and goes on: of all sends, one each way is waited for.
    return [Traffic("pipeline", "Send", calls, size, min(calls, 2) * once)]


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

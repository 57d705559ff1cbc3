"""Reads the communication operators and the parameters' shapes out of a compiled graph's text. Pure."""

import math
import re
from collections import Counter
from dataclasses import dataclass

from harness.errors import HarnessError

KINDS = ("AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "Broadcast", "Send", "Receive")
"""Operators that communicate, by MindSpore's names."""

_BYTES = {
    "Float64": 8,
    "Int64": 8,
    "Float32": 4,
    "Int32": 4,
    "Float16": 2,
    "BFloat16": 2,
    "Int8": 1,
    "UInt8": 1,
    "Bool": 1,
}
_NODE = re.compile(rf"\s+%\d+\(\S+\) = (?P<kind>{'|'.join(KINDS)}|AlltoAllV|NeighborExchange\w*)\(")
_NAME = re.compile(r"\{instance name: (\S+?)\}")
_TENSOR = re.compile(r"Tensor\[(\w+)\]+, \(([-\d, ]*)\)")
_PARAMETER = re.compile(r"%para\d+_(\S+): <Ref\[Tensor\[(\w+)\]\], \(([-\d, ]*)\)")
_CALL = re.compile(r"\s+%\d+\(.*?\) = (?:call @([^\s(),\]]+)\(|%\w+\[@(?:Partial\()?@?([^\s(),\]]+)\)?\]\()")


class GraphError(HarnessError):
    """A graph's text is not what MindSpore 2.10 writes."""


@dataclass(frozen=True)
class Operator:
    """One communication operator of the graph."""

    kind: str
    name: str
    """MindSpore's own, which says why it was put in; numbers in it are random."""

    ranks: tuple[int, ...]
    """Its group; of a message, the other rank."""

    size: int
    """Bytes that this rank puts in; of a Receive, that it gets."""

    fusion: int
    """Operators of one id may be fused; 0 never is."""

    reduction: str
    """``sum``, ``max``; empty where nothing is reduced."""

    parameter: str
    """The parameter that it serves, where MindSpore says so."""

    is_backward: bool
    calls: int
    """How often a step executes it: once a micro-batch, where it is inside one."""


@dataclass(frozen=True)
class Graph:
    """The compiled step of one rank."""

    operators: tuple[Operator, ...]
    parameters: dict[str, tuple[int, ...]]
    """This rank's shape of each."""


def parse(text: str) -> Graph:
    """Reads the last graph that the compiler leaves.

    Args:
        text: of a ``…_backend_pass_….ir`` file.

    Raises:
        GraphError: there is no entry in it.
    """
    lines = text.splitlines()
    entry = re.search(r"# IR entry: @(\S+)", "\n".join(lines[:5]))
    if entry is None:
        raise GraphError("the compiled graph has no «IR entry»; is this a graph of MindSpore 2.10?")
    here = ""
    found: list[tuple[str, int]] = []
    calls: dict[str, Counter[str]] = {}
    parameters: dict[str, tuple[int, ...]] = {}
    for number, line in enumerate(lines):
        if start := re.match(r"subgraph @([^\s(]+)", line):
            here = start[1]
        elif parameter := _PARAMETER.match(line):
            parameters[parameter[1]] = _shape(parameter[3])
        elif _NODE.match(line):
            found.append((here, number))
        elif call := _CALL.match(line):
            calls.setdefault(here, Counter())[call[1] or call[2]] += 1
    times = _executions(entry[1], calls)
    operators = [_operator(lines, number, times[graph]) for graph, number in found if times[graph]]
    return Graph(tuple(operators), parameters)


def _executions(entry: str, calls: dict[str, Counter[str]]) -> Counter[str]:
    """How often each subgraph runs; calls make no circles."""
    times: Counter[str] = Counter()

    def walk(graph: str, count: int) -> None:
        times[graph] += count
        for called, number in calls.get(graph, {}).items():
            walk(called, count * number)

    walk(entry, 1)
    return times


def _operator(lines: list[str], number: int, calls: int) -> Operator:
    line, types = lines[number], lines[number + 1]
    node = _NODE.match(line)
    assert node is not None
    kind = node["kind"]
    name = _NAME.search(line)
    given, _, returned = types.partition(" -> ")
    tensors = _TENSOR.findall(returned if kind == "Receive" else given)
    size = sum(_BYTES.get(dtype, 4) * math.prod(_shape(shape)) for dtype, shape in tensors[:1])
    scope = next((text for text in lines[number + 1 : number + 5] if "scope" in text.lower()), "")
    peer = _attribute(line, r"(?:dst|src)_global_rank: I64\((\d+)\)")
    ranks = (int(peer),) if peer else _shape(_attribute(line, r"group_rank_ids: \(([\d, ]*)\)"))
    return Operator(
        kind=kind,
        name=name[1] if name else "",
        ranks=ranks,
        size=size,
        fusion=int(_attribute(line, r"fusion: I64\((\d+)\)") or 0),
        reduction=_attribute(line, r'[ {]op: "(\w+)"'),
        parameter=_attribute(line, r'mirror_user_id: "([^"]*)"'),
        is_backward="Gradients/" in scope or 'forward_unique_id: "' in line or "is_bp: Bool(1)" in line,
        calls=calls,
    )


def _attribute(line: str, pattern: str) -> str:
    found = re.search(pattern, line)
    return found[1] if found else ""


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(",") if size.strip())

import json
import xml.etree.ElementTree as ElementTree

import pytest

from harness.report.gantt import gantt
from harness.report.trace import chrome_trace
from harness.timeline import Event

RANKS = [
    [Event(1, "compute", "F0", 0.0, 1.0), Event(1, "send", "F0", 1.0, 1.1, 1, 64)],
    [Event(1, "receive", "F0", 0.0, 1.2, 0, 64), Event(1, "compute", "B0", 1.2, 3.0)],
]


def test_a_trace_is_what_perfetto_reads():
    """Complete events with microseconds, a thread a rank, and both ends of each arrow under one id."""
    trace = json.loads(json.dumps(chrome_trace(RANKS)))
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(e["name"], e["tid"], e["ts"], round(e["dur"])) for e in events] == [
        ("F0", 0, 0.0, 1_000_000),
        ("send F0", 0, 1e6, 100_000),
        ("receive F0", 1, 0.0, 1_200_000),
        ("B0", 1, 1.2e6, 1_800_000),
    ]
    start, finish = (event for event in trace["traceEvents"] if event["ph"] in "sf")
    assert (start["ph"], finish["ph"], start["id"]) == ("s", "f", finish["id"])
    assert (start["tid"], finish["tid"]) == (0, 1)
    assert events[1]["args"] == {"step": 1, "bytes": 64, "peer": 1}


def test_messages_of_one_channel_pair_up_in_order():
    twice = [[e for e in RANKS[0][1:] for _ in range(2)], [e for e in RANKS[1][:1] for _ in range(2)]]
    ids = [(e["ph"], e["id"]) for e in chrome_trace(twice)["traceEvents"] if e["ph"] in "sf"]
    assert ids == [("s", "1-0-1-1"), ("s", "1-0-1-2"), ("f", "1-0-1-1"), ("f", "1-0-1-2")]


def bars(text):
    root = ElementTree.fromstring(text)
    named = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if len(rect)]
    return [(rect[0].text, float(rect.get("x")), float(rect.get("width"))) for rect in named]


def test_a_gantt_draws_every_event_to_scale():
    found = bars(gantt(RANKS, "two & <stages>"))
    assert [text for text, _, _ in found] == [
        "compute F0: 1000.00 ms",
        "send F0: 100.00 ms, 64 bytes",
        "receive F0: 1200.00 ms, 64 bytes",
        "compute B0: 1800.00 ms",
    ]
    unit = found[0][2]
    assert found[3][1] - found[0][1] == pytest.approx(1.2 * unit, abs=0.1)
    assert found[3][2] == pytest.approx(1.8 * unit, abs=0.1)


def test_titles_are_escaped():
    assert "two &amp; &lt;stages&gt; · step 1" in gantt(RANKS, "two & <stages>")

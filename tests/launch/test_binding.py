"""Ranks that are bound to cores of their own."""

import os

import pytest

from harness import Layout, Scenario
from harness.launch import train
from harness.launch.code import Code
from harness.launch.placement import Placement
from harness.launch.request import report_file
from harness.run import RankReport

SMALL = Scenario(
    model="decoder:layers=1,width=8,heads=2,feed_forward=8",
    data="markov",
    steps=2,
    batch=2,
    sequence=8,
    eval_sequences=0,
    layout=Layout(dp=2),
)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: there is nothing to choose from")
def test_each_rank_has_its_own_cores_and_the_environment_says_so(tmp_path):
    run = train(SMALL, "cpu", Code(tmp_path), tmp_path, 120.0, placement=Placement(binding="core"))
    assert run.environment.binding == "core"
    for rank in range(2):
        report = RankReport.model_validate_json(report_file(tmp_path, rank).read_text())
        assert report.load.cores == len(os.sched_getaffinity(0)) // 2

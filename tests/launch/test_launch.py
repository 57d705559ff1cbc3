import os

import pytest

from harness import Layout, Scenario
from harness.errors import ScenarioError
from harness.launch import check_supported, rank_environment
from harness.launch.code import Code


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (Scenario(model="my.module:model", layout=Layout(tp=2)), "layout.tp=2 .* can't cut a model of yours"),
        (Scenario(model="my.module:model", layout=Layout(pp=2)), "layout.pp=2"),
        (Scenario(layout=Layout(dp=2, optimizer_sharding=True), optimizer="sgd"), "it keeps no states to shard"),
        (Scenario(data_workers=9999), "data_workers=9999 are more than the machine has cores"),
        (Scenario(precision="bfloat16"), "no bfloat16 matmul on CPU"),
        (Scenario(engine="semi_auto", eval_sequences=0), "runs on Ascend and GPU only; use engine='explicit'"),
    ],
)
def test_what_the_trainer_cannot_do_is_refused(scenario, message):
    with pytest.raises(ScenarioError, match=message):
        check_supported(scenario, "cpu")


def test_bfloat16_is_for_other_hardware():
    check_supported(Scenario(precision="bfloat16"), "ascend")
    check_supported(Scenario(layout=Layout(dp=2)), "cpu")


def test_ranks_share_the_cores(monkeypatch, tmp_path):
    monkeypatch.setenv("MS_COMPILER_CACHE_ENABLE", "1")
    monkeypatch.setenv("RANK_ID", "7")
    cores = len(os.sched_getaffinity(0))
    environment = rank_environment(2, Code(tmp_path))
    assert environment["OMP_NUM_THREADS"] == str(max(1, cores // 2))
    assert "RANK_ID" not in environment
    assert "MS_COMPILER_CACHE_ENABLE" not in environment


def test_ranks_run_the_code_they_are_told(monkeypatch, tmp_path):
    tree, checkout = tmp_path / "tree", tmp_path / "tree" / ".harness" / "checkout"
    for folder in (tree / "src", tree / "lib", checkout / "src", checkout / "lib"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.syspath_prepend(str(tree / "lib"))
    assert rank_environment(1, Code(tree))["PYTHONPATH"] == "/elsewhere"
    environment = rank_environment(1, Code(checkout, tmp_path / "bin" / "python", instead_of=tree))
    paths = environment["PYTHONPATH"].split(":")
    assert paths[0] == str(checkout)
    assert set(paths[1:]) == {str(checkout / "lib"), str(checkout / "src"), "/elsewhere"}
    assert paths[-1] == "/elsewhere"
    assert environment["PATH"].startswith(f"{tmp_path / 'bin'}:")


def test_the_working_trees_code_is_not_taken_for_the_checkouts(tmp_path):
    code = Code(tmp_path / ".harness" / "checkout", instead_of=tmp_path)
    assert code.may_run(tmp_path / ".harness" / "checkout" / "model.py")
    assert not code.may_run(tmp_path / "src" / "model.py")
    assert code.may_run(tmp_path.parent / "elsewhere" / "model.py")
    assert Code(tmp_path).may_run(tmp_path / "model.py")

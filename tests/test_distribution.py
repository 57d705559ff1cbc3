"""The wheel and the source distribution in a project of somebody else's, without this repository's folders."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.processes import ROOT, called

SUITE = """
from harness import Scenario, cards, hardware

@hardware("cpu", "ascend")
@cards(1)
def test_it_learns(trainer, gate):
    run = trainer.run(Scenario(model="nano", steps=6, batch=4, sequence=32, eval_sequences=8))
    assert run.curve("loss")[-1] < run.curve("loss")[0]
    gate.check(run, only=["loss", "validation_perplexity"])
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """A wheel and an sdist of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    built = called(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    assert built.returncode == 0, built.stderr + built.stdout
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_a_project_of_its_own_needs_nothing_of_ours(distributions, tmp_path, kind):
    """A fresh environment that sees this one's other packages; a suite of the project's own, and a folder of baselines
    that its settings name: without a baseline it fails, approved it passes, and the other hardware is skipped."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    place = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    (Path(place.strip()) / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (package,) = distributions.glob(kind)
    installed = called(python, "-m", "pip", "install", "--no-deps", "--quiet", package, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    project = tmp_path / "project"
    (project / "checks").mkdir(parents=True)
    (project / "checks" / "test_mine.py").write_text(SUITE)
    (project / "pyproject.toml").write_text('[tool.harness]\nbaselines = "checks/approved"\n')
    where = called(python, "-c", "import harness; print(harness.__file__)", cwd=project)
    assert where.stdout.startswith(str(tmp_path / "venv")), where.stdout + where.stderr
    arguments = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "checks")
    first = called(python, *arguments, cwd=project)
    assert first.returncode == 1, first.stdout + first.stderr
    assert "NO_BASELINE" in first.stdout
    command = ("-m", "harness.cli", "baseline", "approve", "--reason", "first", "--by", "them")
    approved = called(python, *command, cwd=project)
    assert approved.returncode == 0, approved.stderr
    assert list((project / "checks" / "approved").rglob("*.json"))
    assert not (project / "baselines").exists()
    second = called(python, *arguments, cwd=project)
    assert second.returncode == 0, second.stdout
    assert "1 passed, 1 skipped" in second.stdout
    assert "1 tests passed, 1 skipped" in (project / ".harness/latest/report.html").read_text(encoding="utf-8")

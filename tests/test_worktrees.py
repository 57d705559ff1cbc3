import subprocess
import sys

import pytest

from harness.errors import LaunchError
from harness.worktrees import Worktrees


def git(folder, *arguments):
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def root(tmp_path):
    """A project in a folder of a repository, with two commits and a change that is not committed."""
    root = tmp_path / "repository" / "project"
    root.mkdir(parents=True)
    git(root, "init", "-q", "..")
    for text in ("one", "two"):
        (root / "model.py").write_text(text)
        git(root, "add", "-A")
        git(root, "commit", "-qm", text)
    (root / "model.py").write_text("three")
    return root


@pytest.fixture
def worktrees(root, tmp_path):
    made = Worktrees(root, tmp_path / "results" / "worktrees" / "s1")
    made.open()
    yield made
    made.close()


def test_a_checkout_is_clean_and_leaves_the_working_tree_alone(worktrees, root):
    folder = worktrees.checkout("base", lambda: worktrees.resolve("HEAD~1"))
    assert folder.name == "project"
    assert (folder / "model.py").read_text() == "one"
    assert worktrees.checkout("base", lambda: worktrees.resolve("HEAD~1")) == folder
    assert (root / "model.py").read_text() == "three"


def test_a_snapshot_holds_what_is_not_committed_and_changes_nothing(worktrees, root):
    head = worktrees.checkout("head", worktrees.snapshot)
    assert (head / "model.py").read_text() == "three"
    assert git(root, "stash", "list") == ""
    git(root, "checkout", "-q", "model.py")
    assert worktrees.snapshot() == git(root, "rev-parse", "HEAD")


def test_what_names_no_commit_is_no_commit(worktrees):
    assert len(worktrees.resolve("HEAD")) == 40
    for reference in ("nowhere", "--help", "-h", "", "HEAD:model.py"):
        assert worktrees.resolve(reference) == ""


def test_closing_removes_them(root, tmp_path):
    made = Worktrees(root, tmp_path / "worktrees" / "s")
    made.open()
    made.checkout("base", lambda: "HEAD")
    assert "worktrees/s/base" in git(root, "worktree", "list")
    made.close()
    assert "worktrees/s" not in git(root, "worktree", "list")
    assert not (tmp_path / "worktrees" / "s").exists()


def test_those_of_a_killed_session_are_removed_by_the_next_and_those_of_a_live_one_are_not(root, tmp_path):
    script = """
import sys, time
from pathlib import Path
from harness.worktrees import Worktrees
made = Worktrees(Path(sys.argv[1]), Path(sys.argv[2]))
made.open()
made.checkout("base", lambda: "HEAD")
print("ready", flush=True)
time.sleep(60)
"""
    folder = tmp_path / "worktrees"
    command = [sys.executable, "-c", script, str(root), str(folder / "other")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "ready\n"
        mine = Worktrees(root, folder / "mine")
        mine.open()
        assert (folder / "other" / "base").exists()
        mine.close()
        other.kill()
        other.wait()
        mine.open()
        assert not (folder / "other").exists()
        assert "other" not in git(root, "worktree", "list")
        mine.close()


def test_two_processes_make_one_checkout(worktrees, root):
    script = (
        "import sys; from pathlib import Path; from harness.worktrees import Worktrees;"
        "print(Worktrees(Path(sys.argv[1]), Path(sys.argv[2])).checkout('base', lambda: 'HEAD'))"
    )
    command = [sys.executable, "-c", script, str(root), str(worktrees.folder)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert len({process.communicate()[0] for process in both}) == 1
    assert [process.returncode for process in both] == [0, 0]


def test_what_git_refuses_is_told(worktrees):
    with pytest.raises(LaunchError, match=r"git worktree failed: .*nowhere"):
        worktrees.checkout("base", lambda: "nowhere")

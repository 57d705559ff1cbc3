from pathlib import PurePath

import pytest

from harness.orphans import orphans

FILES = [PurePath(f"cpu/training/test_x/{name}.json") for name in ("test_a", "test_b")]
A = "cpu/training/test_x/test_a.json"
B = "cpu/training/test_x/test_b.json"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "suites" / "training").mkdir(parents=True)
    (tmp_path / "suites" / "training" / "test_x.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["suites"], [B]),
        (["suites/training"], [B]),
        (["suites/training/test_x.py"], [B]),
        (["suites/parallel", "suites/training"], [B]),
        # What was not collected, or by single tests only, can't be told from what is gone.
        (["suites/parallel"], []),
        (["suites/training/test_x.py::test_a"], []),
        (["suites/training/test_x.py::test_a[cpu]", "suites/training/test_x.py"], []),
    ],
)
def test_a_file_that_no_test_of_a_collected_module_asks_for(root, arguments, expected):
    assert orphans(FILES, {A}, [], arguments, root) == expected
    assert orphans(FILES, {A, B}, [], arguments, root) == []


def test_absolute_arguments_and_modules_outside_the_suites_folder(root):
    assert orphans(FILES, {A}, [], [str(root / "suites")], root) == [B]
    (root / "checks").mkdir()
    (root / "checks" / "test_y.py").touch()
    file = PurePath("cpu/checks/test_y/test_a.json")
    assert orphans([file], set(), [], ["suites"], root) == []
    assert orphans([file], set(), [], ["checks"], root) == [str(file)]


def test_a_file_of_a_module_that_is_gone(root):
    gone = PurePath("ascend/training/test_gone/test_a.json")
    assert orphans([gone], {A}, [], ["suites/parallel"], root) == [str(gone)]


@pytest.mark.parametrize("skipped", ["suites/training/test_x.py", "suites/training", "suites"])
def test_a_module_that_skips_itself_tells_nothing(root, skipped):
    assert orphans(FILES, set(), [skipped], ["suites"], root) == []
    assert orphans(FILES, {A}, ["suites/other.py"], ["suites"], root) == [B]


def test_a_finished_training_has_no_test_by_rights(root):
    assert orphans([PurePath("ascend/logs/ours.json")], set(), [], ["suites"], root) == []

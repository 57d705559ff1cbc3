import getpass
import os
import tempfile
from pathlib import Path

import pytest

from harness.anonymity import anonymous

ROOT = Path("/somewhere/project")
HOME = str(Path.home())
HOST = os.uname().nodename
USER = getpass.getuser()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("File /somewhere/project/a.py", "File ./a.py"),
        ("in '/somewhere/project'", "in '.'"),
        ("/somewhere/project2/a.py", "/somewhere/project2/a.py"),
        ("/else/somewhere/project/a.py", "/else/somewhere/project/a.py"),
        (f"{HOME}/x", "~/x"),
        (f"/var{HOME}/x {HOME}fs", f"/var{HOME}/x {HOME}fs".replace(f"/{USER}/", "/<user>/")),
        (f"at {HOST}:80", "at <host>:80"),
        (f"x{HOST}y", f"x{HOST}y"),
        (f"{tempfile.gettempdir()}/pytest-of-{USER}/x", "<tmp>/pytest-of-<user>/x"),
        ("lone \udcff", "lone ?"),
    ],
)
def test_names_of_this_machine_go_and_others_stay(text, expected):
    assert anonymous(text, ROOT) == expected


def test_the_target_of_a_linked_project_goes_too(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert anonymous(f"{tmp_path}/real/x and {tmp_path}/link/y", tmp_path / "link") == "./x and ./y"

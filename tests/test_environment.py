import getpass
import socket

from harness.environment import Environment, machine_key, memory, processor


def environment(**changes):
    return Environment(
        **{"hardware": "cpu", "architecture": "x86_64", "mindspore": "2.10.0", "data": "text-1", **changes}
    )


def test_differences_name_what_changed():
    assert environment().differences(environment()) == []
    assert environment(mindspore="2.9.0").differences(environment()) == ["mindspore: 2.9.0 → 2.10.0"]


def test_machine_key_names_no_host_and_no_user():
    key = machine_key(processor(), processor(), 2, memory())
    assert socket.gethostname() not in key
    assert getpass.getuser() not in key.split("-")
    assert key == machine_key(processor(), processor(), 2, memory())
    assert len({key, machine_key("x", "x", 2, 8), machine_key("x", "x", 4, 8), machine_key("x", "x", 2, 9)}) == 4
    assert "/" not in machine_key("../x", "../x", 2, 8)

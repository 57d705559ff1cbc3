import socket
import subprocess
import sys
from contextlib import ExitStack

from harness.launch.ports import FIRST, LAST, reserved_port


def test_ports_of_one_process_differ():
    with ExitStack() as stack:
        ports = [stack.enter_context(reserved_port()) for _ in range(20)]
        assert len(set(ports)) == 20
        assert all(FIRST <= port < LAST for port in ports)


def test_ports_of_several_processes_differ():
    script = "from harness.launch.ports import reserved_port\nwith reserved_port() as p: print(p, flush=True); input()"
    sessions = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ports = [session.stdout.readline() for session in sessions]
    for session in sessions:
        session.communicate("\n")
    assert len(set(ports)) == 4


def test_a_port_in_use_is_left_alone():
    with reserved_port() as port:
        pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with reserved_port() as other:
            assert other != port

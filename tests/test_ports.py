"""The harness: tests that run at the same time do not take each other's ports."""

import subprocess
import sys

from harness import ports

SHOW = (
    "from harness import ports; print(*(ports.free() for _ in range(3 * ports.BLOCK)), flush=True); input()"
)


def test_parallel_processes_share_no_ports_with_each_other_or_with_clients(request):
    command = [sys.executable, "-c", SHOW]
    options = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "cwd": request.config.rootpath,
    }
    others = [subprocess.Popen(command, **options) for _ in range(3)]
    seen = [set(map(int, other.stdout.readline().split())) for other in others]
    # A process gives its block to others only when it has ended.
    for other in others:
        other.communicate("\n")
        assert other.returncode == 0
    seen.append({ports.free() for _ in range(3 * ports.BLOCK)})
    assert all(0 < len(each) <= ports.BLOCK for each in seen)
    assert len(set.union(*seen)) == sum(map(len, seen))
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        low, high = map(int, file.read().split())
    assert not [port for each in seen for port in each if low <= port <= high]

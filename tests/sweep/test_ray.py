"""A real cluster on this machine: two `ray start`, each on a loopback address of its own. One node is killed with SIGKILL, then the driver."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from conformance import paths
from tests.sweep.simulation import PATIENCE
from tests.sweep.support import KIND, verdicts

pytest.importorskip("ray")
pytestmark = pytest.mark.slow
UNITS = 120
LIMIT = 1500  # seconds: a loaded machine takes minutes to start a node


def wait(until: Callable[[], bool], what: str, limit: float = LIMIT) -> None:
    deadline = time.monotonic() + limit
    while not until():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        time.sleep(0.05)


class Node:
    """`ray start` in a process group of its own."""

    def __init__(self, env: dict[str, str], *words: str) -> None:
        ray = [
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "start",
            "--num-cpus",
            "1",
            "--disable-usage-stats",
            "--block",
            *words,
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(ray, env=env, start_new_session=True, **quiet)  # type: ignore[call-overload]

    def kill(self) -> None:
        """SIGKILL to all of it: `ray start`, the raylet, the workers."""
        for pid in [*descendants(self.process.pid), self.process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def descendants(pid: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in file.read_text().split()]
        except OSError:
            continue
        found += [one for child in children for one in (*descendants(child), child)]
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, dict[str, str], list[Node]]]:
    """The address of the head, the environment of everything that belongs to the cluster, and its two nodes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, **PATIENCE, "PYTHONPATH": paths.import_path(), "CONFORMANCE_HOME": str(tmp_path / "home")}
    address = f"127.0.0.2:{port}"
    temporary = ["--temp-dir", f"/tmp/r{port}"]  # sockets have short names
    head = Node(
        env, "--head", "--port", str(port), "--node-ip-address", "127.0.0.2", "--include-dashboard", "false", *temporary
    )
    nodes = [head]
    try:
        wait(lambda: connects("127.0.0.2", port), "the head")
        nodes.append(Node(env, "--address", address, "--node-ip-address", "127.0.0.3"))
        yield address, env, nodes
    finally:
        for node in nodes:
            node.kill()
        subprocess.run(["rm", "-rf", f"/tmp/r{port}"], check=False)


def connects(host: str, port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex((host, port)) == 0


def test_a_node_is_killed_and_then_the_driver_and_every_cell_comes_once(tmp_path: Path, cluster: tuple) -> None:
    address, env, nodes = cluster
    folder = tmp_path / "records"
    words = [
        "sweep",
        "--kind",
        KIND,
        "--python",
        f"a={sys.executable}",
        "--ray",
        address,
        "--installed",
    ]
    words += ["-m", str(UNITS), "-m", "slow=400", "-m", "kill=100", "-o", str(folder)]
    command = [sys.executable, "-m", "conformance.cli", *words]
    with (tmp_path / "log").open("wb") as log:
        driver = subprocess.Popen(command, env=env, stdout=log, stderr=log)

        def lines() -> int:
            assert driver.poll() is None, (tmp_path / "log").read_text()
            return sum(path.read_text().count("\n") for path in folder.glob("*.jsonl"))

        def both_at_work() -> bool:
            lines()
            return len(workers(nodes[0])) == len(workers(nodes[1])) == 1

        wait(both_at_work, "a worker on each node")
        wait(lambda: lines() > 60, "lines")
        nodes[1].kill()
        at_death = lines()
        wait(lambda: lines() > at_death + 70, "lines after the node's death")
        driver.kill()
        driver.wait()
    (record,) = folder.glob("*.jsonl")
    before = record.read_text().count("\n")
    assert before < 7 * UNITS, "the driver was killed in the middle"
    wait(lambda: not workers(nodes[0]), "the end of the workers of a killed driver")
    done = subprocess.run([*command, "--resume"], env=env, capture_output=True, text=True, timeout=LIMIT)
    found = verdicts(record)
    assert len(found) == 7 * UNITS, done.stderr
    bad = {name.rpartition(".")[2] for name, verdict in found.items() if verdict != "pass"}
    assert bad == {"000100"}, "verdicts as without faults: only the unit that kills its worker is an error"
    assert done.returncode == 1


def workers(node: Node) -> list[int]:
    """The sweep's workers on a node."""
    found = []
    for pid in descendants(node.process.pid):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found += [pid] if b"conformance.sweep.worker" in command else []
    return found


def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path) -> None:
    """No cluster at the address."""
    env = {**os.environ, **PATIENCE, "PYTHONPATH": paths.import_path(), "CONFORMANCE_HOME": str(tmp_path / "home")}
    words = [
        "sweep",
        "--kind",
        KIND,
        "-m",
        "1",
        "--python",
        f"a={sys.executable}",
        "-o",
        str(tmp_path / "records"),
    ]
    command = [sys.executable, "-m", "conformance.cli", *words, "--installed", "--ray", "127.0.0.1:1"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2 and last.startswith("conformance: ") and "127.0.0.1:1" in last, done.stderr
    assert "Traceback" not in done.stderr

"""A cluster of many nodes on one machine (Ray's own local cluster), a hundred thousand cells that cost nothing, and nodes that die.

    python -m tests.sweep.simulation --nodes 20 --cells 100000 --die 2

Prints a line of a Markdown table for the undisturbed sweep and one for the sweep in which nodes die in the middle: cells
in a second, the driver's processor time for a cell, its memory, and how many cells were run twice. docs/measured/sweep.md
has what was measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.sweep.ray_cluster import RayExecutor
from conformance.sweep.scheduler import Scheduler
from conformance.sweep.spec import Sweep
from tests.sweep.support import null, verdicts

PATIENCE = {
    "RAY_worker_register_timeout_seconds": "900",
    "RAY_agent_register_timeout_ms": "900000",
    "RAY_raylet_start_wait_time_s": "900",
    "RAY_gcs_server_request_timeout_seconds": "600",
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
}
SETTINGS = {"health_check_initial_delay_ms": 60_000, "health_check_timeout_ms": 60_000}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--die", type=int, default=2, help="nodes that die when a third of the cells have come")
    parser.add_argument("--slow", type=int, default=0, help="milliseconds that each case takes")
    given = parser.parse_args()
    os.environ.update(PATIENCE)
    cluster, nodes, started = start(given.nodes)
    print(f"{given.nodes} nodes in {time.monotonic() - started:.0f} s", flush=True)
    print(
        "| nodes | cells | seconds | cells/s | driver ms/cell | driver MiB | died | cells run twice |\n|"
        + " ---: |" * 8
    )
    measure(cluster, given, lambda scheduler: None)

    def kill(scheduler: Any) -> None:
        while sum(column.lines for column in scheduler.columns) < given.cells // 3:
            time.sleep(0.02)
        own = scheduler.executor.ray.get_runtime_context().get_node_id()  # the driver dies with the node that it is on
        for node in [node for node in nodes if node.node_id != own][: given.die]:
            node.kill_raylet(check_alive=False)

    if given.die:
        measure(cluster, given, kill)


def start(count: int) -> tuple[Any, list[Any], float]:
    from ray.cluster_utils import Cluster

    began = time.monotonic()
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, "_system_config": SETTINGS}
    )
    nodes = [cluster.add_node(num_cpus=1, wait=False, object_store_memory=80 << 20) for _ in range(count)]
    cluster.wait_for_nodes(timeout=1800)
    return cluster, nodes, began


def measure(cluster: Any, given: argparse.Namespace, disturb: Callable[[Any], None]) -> None:
    """One sweep of two environments: two records are written side by side."""
    words = [str(given.cells // 14), *([f"slow={given.slow}"] if given.slow else [])]
    sweep = Sweep(environments=tuple(null(f"torch-2.{minor}", *words) for minor in (14, 15)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        executor = RayExecutor(cluster.address, gpu=False, installed=True)
        scheduler = Scheduler(sweep, executor, folder, lambda unit: 0.05, ["simulation"], say=lambda text: None)
        came = count_lines(scheduler)
        while len([one for one in executor._actors.values() if one.pending is None]) < given.nodes - given.die:
            scheduler_poll(scheduler)
        thread = threading.Thread(target=disturb, args=(scheduler,), daemon=True)
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        thread.start()
        scheduler.run()
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
        alive = sum(one["Alive"] for one in executor.ray.nodes()) - 1
        executor.close()
        cells = sum(len(verdicts(path)) for path in folder.glob("*.jsonl"))
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = [
        given.nodes,
        f"{cells:,}",
        f"{wall:.0f}",
        f"{cells / wall:,.0f}",
        f"{1000 * spent / cells:.3f}",
        after.ru_maxrss // 1024,
    ]
    print("| " + " | ".join(map(str, [*row, given.nodes - alive, f"{came[0] - cells:,}"])) + " |", flush=True)


def scheduler_poll(scheduler: Scheduler) -> None:
    """Let slots come, without handing out work."""
    for event in scheduler.executor.poll(0.5):
        scheduler._take(event)


def count_lines(scheduler: Scheduler) -> list[int]:
    """How many lines came, those included that had come before from a node that died."""
    came, write = [0], scheduler._write

    def counted(column: Any, slot: str, message: dict[str, Any]) -> None:
        came[0] += 1
        write(column, slot, message)

    scheduler._write = counted  # type: ignore[method-assign]
    return came


if __name__ == "__main__":
    main()

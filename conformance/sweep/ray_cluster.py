"""Slots on the nodes of a Ray cluster: actors, each with a worker in a process of its own. The only module that imports Ray.

For each node one actor is asked for per CPU (and one per GPU, where GPU code is run); an actor that finds no room waits and gets no work.
Ray tells which actors are gone; the scheduler gives what they held to others. Nodes that come later are used, too.
"""

from __future__ import annotations

import itertools
import os
import queue
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import paths
from conformance.errors import UsageError, first_line
from conformance.sweep.columns import Place
from conformance.sweep.executor import Event, Free, Gone, Note, Question, Said

LOOK = 5.0  # seconds between two looks at the list of nodes
FLUSH = 0.25  # seconds that a line may wait for others to travel with it
RESTARTS = 3  # of a slot whose process died while its node lives
SHIPPED = ("conformance", "fixtures", "reports")
NOT_SHIPPED = shutil.ignore_patterns("__pycache__", "*.xz", "*.texts", "diffs", "repros", "upstream", "*.md", "*.png")


@dataclass
class _Actor:
    """`pending` is what is waited for: that it is there, or the stream of its answers."""

    name: str
    node: str
    label: str
    gpu: bool
    handle: Any
    pending: Any
    place: Place | None = None
    streams: bool = False
    restarts: int = 0


class RayExecutor:
    """address: `auto`, or HOST:PORT of a cluster's head. installed: nodes use the suite that is installed there, which must be of this very
    revision; else this process's own is sent to them."""

    def __init__(
        self,
        address: str,
        gpu: bool,
        *,
        installed: bool = False,
        cpus: float = 1.0,
        per_node: int | None = None,
    ) -> None:
        self.ray = connect(address, installed)
        self.gpu, self.cpus, self.per_node = gpu, cpus, per_node
        self._actors: dict[str, _Actor] = {}
        self._nodes: dict[str, bool] = {}  # node id → alive
        self._count = itertools.count(1)
        self._looked = 0.0
        self._notes: list[Event] = []
        self._slot_class = _slot_class(self.ray)

    # ----------------------------------------------------------------------------------------------- for the scheduler

    def poll(self, timeout: float) -> Sequence[Event]:
        try:
            if time.monotonic() - self._looked > LOOK:
                self._look_at_nodes()
            found, self._notes = self._notes, []
            pending = {actor.pending: actor for actor in self._actors.values() if actor.pending is not None}
            if not pending:
                time.sleep(timeout if not found else 0)
                return found
            ready, _ = self.ray.wait(list(pending), num_returns=len(pending), timeout=0)
            if not ready:
                ready, _ = self.ray.wait(list(pending), num_returns=1, timeout=timeout)
            for one in ready:
                found += self._answer(pending[one])
            return found
        except (ConnectionError, self.ray.exceptions.RaySystemError) as error:
            raise UsageError(
                f"the Ray cluster is gone ({first_line(error)}): add --resume to go on when it is back"
            ) from None

    def ask(self, slot: str, question: Question) -> None:
        actor = self._actors[slot]
        actor.pending = actor.handle.ask.remote(*question.encoded())
        actor.streams = True

    def ready(self, environment: str) -> bool:
        return True  # a node makes it when it is first asked

    def slots(self) -> int:
        return len(self._actors)

    def alive(self) -> bool:
        return True

    def close(self) -> None:
        for actor in self._actors.values():
            with suppress(Exception):
                self.ray.kill(actor.handle)
        self.ray.shutdown()

    # -------------------------------------------------------------------------------------------------------- answers

    def _answer(self, actor: _Actor) -> Iterator[Event]:
        errors = self.ray.exceptions
        try:
            if not actor.streams:
                said = self.ray.get(actor.pending)
                actor.pending = None
                yield from self._met(actor, said)
                return
            try:
                messages = self.ray.get(next(actor.pending))
            except StopIteration:
                actor.pending = None
                assert actor.place is not None
                yield Free(actor.name, actor.label, actor.place)
                return
            yield Said(actor.name, messages)
        except errors.RuntimeEnvSetupError as error:
            raise UsageError(
                f"the suite cannot be sent to {actor.label}: {first_line(error)}; use --installed"
            ) from None
        except (errors.RayActorError, errors.WorkerCrashedError, errors.ObjectLostError, errors.RayTaskError) as error:
            yield from self._dead(actor, error)

    def _met(self, actor: _Actor, said: dict[str, str]) -> Iterator[Event]:
        """The slot is there, and said what its machine is. One with a suite of another revision is not used."""
        from conformance.revision import revision

        if said["suite"] != revision():
            del self._actors[actor.name]
            mend = "install the same one on every node, or leave out --installed: then this one is sent"
            told = f"the suite on {actor.label} is {said['suite']}, and this one is {revision()}: {mend}"
            if not self._actors:
                raise UsageError(told)
            yield Note(told)
            return
        actor.place = Place(said["machine"], said["gpu"])
        yield Free(actor.name, actor.label, actor.place)

    def _dead(self, actor: _Actor, error: Exception) -> Iterator[Event]:
        del self._actors[actor.name]
        with suppress(Exception):
            self.ray.kill(actor.handle)
        died = not self._is_alive(actor.node)
        how = "the node died" if died else f"the slot's process died: {first_line(error)}"
        yield Gone(actor.name, how, died)
        if died:
            yield Note(f"{actor.label} is gone: what its slot held is run elsewhere")
        elif actor.restarts < RESTARTS:
            self._begin(actor.node, actor.label, actor.gpu, actor.restarts + 1)

    # ---------------------------------------------------------------------------------------------------------- nodes

    def _is_alive(self, node: str) -> bool:
        self._nodes = {one["NodeID"]: one["Alive"] for one in self.ray.nodes()}
        return self._nodes.get(node, False)

    def _look_at_nodes(self) -> None:
        """Start slots on nodes that were not there before."""
        self._looked = time.monotonic()
        for one in self.ray.nodes():
            node, known = one["NodeID"], self._nodes.get(one["NodeID"])
            self._nodes[node] = one["Alive"]
            if known is not None or not one["Alive"]:
                continue
            resources, label = one["Resources"], f"{one['NodeManagerHostname']} (node {node[:8]})"
            gpus = int(resources.get("GPU", 0)) if self.gpu else 0
            cpus = int((resources.get("CPU", 0) - gpus) // self.cpus)
            for gpu in [True] * gpus + [False] * min(cpus, self.per_node or cpus):
                self._begin(node, label, gpu)

    def _begin(self, node: str, label: str, gpu: bool, restarts: int = 0) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        options = {
            "num_cpus": self.cpus,
            "num_gpus": 1 if gpu else 0,
            "max_restarts": 0,
            "scheduling_strategy": strategy,
        }
        handle = self._slot_class.options(**options).remote(gpu)
        name = f"slot {next(self._count)}"
        self._actors[name] = _Actor(name, node, label, gpu, handle, handle.meet.remote(), restarts=restarts)


# -------------------------------------------------------------------------------------------------- in the cluster


def _slot_class(ray: Any) -> Any:
    """The actor: a slot, and what its machine is."""

    class RaySlot:
        def __init__(self, gpu: bool) -> None:
            from conformance.sweep.slot import SlotThread

            self.gpu = gpu
            self.said: queue.Queue[dict[str, Any] | None] = queue.Queue()
            self.thread = SlotThread(gpu, self.said.put)
            self.thread.start()

        def meet(self) -> dict[str, str]:
            from conformance.revision import revision
            from conformance.sweep import slot
            from conformance.sweep.local import gpu_name

            return {"machine": slot.machine(), "gpu": gpu_name() if self.gpu else "", "suite": revision()}

        @ray.method(num_returns="streaming")
        def ask(self, *question: Any) -> Iterator[list[dict[str, Any]]]:
            """What the worker says, in batches: each travels by itself, and lines of cheap cells come by the hundred."""
            self.thread.ask(*question)
            message: dict[str, Any] | None = {}
            while message is not None:
                batch = [message] if (message := self.said.get()) is not None else []
                deadline = time.monotonic() + FLUSH
                while message is not None and (left := deadline - time.monotonic()) > 0:
                    try:
                        if (message := self.said.get(timeout=left)) is not None:
                            batch.append(message)
                    except queue.Empty:
                        break
                if batch:
                    yield batch

    return ray.remote(RaySlot)


# ------------------------------------------------------------------------------------------------------ connecting


def connect(address: str, installed: bool) -> Any:
    """The module `ray`, connected. Everything that can be wrong with that is said in one line."""
    try:
        import ray
    except ImportError:
        raise UsageError("--ray needs Ray: pip install 'torch-compiler-conformance[ray]'") from None
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # slots hide GPUs themselves; Ray would warn
    try:
        with tempfile.TemporaryDirectory(prefix="conformance-suite-") as folder:
            shipped = {} if installed else {"working_dir": stage_suite(Path(folder))}
            ray.init(address, runtime_env=shipped or None, logging_level="ERROR", log_to_driver=False)
    except ConnectionError as error:
        start = "start one with `ray start --head`, or name its address"
        raise UsageError(f"there is no Ray cluster at {address!r}: {start} ({first_line(error)})") from None
    except (RuntimeError, ValueError, OSError) as error:
        raise UsageError(f"cannot join the Ray cluster at {address!r}: {_mismatch(str(error))}") from None
    return ray


def _mismatch(text: str) -> str:
    """Ray's own words about versions take five lines."""
    return " ".join(text.split())[:300]


def stage_suite(folder: Path) -> str:
    """The package, the micrographs, expectations and baselines as they are here, for Ray to send to the nodes."""
    shutil.copytree(paths.PACKAGE, folder / "conformance", ignore=shutil.ignore_patterns("__pycache__", "data"))
    for name in SHIPPED[1:]:
        shutil.copytree(paths.data() / name, folder / name, ignore=NOT_SHIPPED)
    return str(folder)

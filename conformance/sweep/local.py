"""Slots on this machine: threads, each with a worker in a process of its own. Needs nothing but the suite."""

from __future__ import annotations

import os
import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conformance.errors import UsageError
from conformance.plan import cores
from conformance.sweep.columns import Place
from conformance.sweep.executor import Event, Free, Note, Question, Refused, Said
from conformance.sweep.slot import GPU_DRIVER, SlotThread, interpreter, machine
from conformance.sweep.spec import Environment

MAKERS = 2  # environments that are made at a time: uv itself downloads in parallel
HERE = "this machine"


class LocalExecutor:
    """Makes the environments in the background, in order, while the first that are ready are run."""

    def __init__(self, environments: Sequence[Environment], workers: int | None = None, gpu: bool = False) -> None:
        self._events: queue.Queue[Event] = queue.Queue()
        self._slots: dict[str, SlotThread] = {}
        self._ready: set[str] = {one.name for one in environments if one.interpreter}
        self._makers = ThreadPoolExecutor(MAKERS)
        for one in environments:
            if one.name not in self._ready:
                self._makers.submit(self._make, one)
        number = workers or cores()
        places = [
            *[Place(machine())] * number,
            *([Place(machine(), gpu_name())] if gpu and GPU_DRIVER.exists() else []),
        ]
        for index, place in enumerate(places, 1):
            self._begin(f"{'gpu' if place.gpu else 'slot'} {index}", place)

    def _begin(self, name: str, place: Place) -> None:
        def tell(message: dict[str, Any] | None) -> None:
            self._events.put(Free(name, HERE, place) if message is None else Said(name, [message]))

        self._slots[name] = SlotThread(bool(place.gpu), tell)
        self._slots[name].start()
        tell(None)

    def _make(self, environment: Environment) -> None:
        try:
            interpreter(environment, lambda text: self._events.put(Note(f"{environment.name}: {text}")))
            self._ready.add(environment.name)
            self._events.put(Note(f"{environment.name}: environment ready"))
        except (LookupError, UsageError) as error:
            self._events.put(Refused(environment.name, f"the environment cannot be made: {error}"))
        except Exception as error:
            self._events.put(
                Refused(environment.name, f"the environment cannot be made: {type(error).__name__}: {error}")
            )

    def poll(self, timeout: float) -> Sequence[Event]:
        found: list[Event] = []
        try:
            found.append(self._events.get(timeout=timeout))
            while len(found) < 1000:
                found.append(self._events.get_nowait())
        except queue.Empty:
            pass
        return found

    def ask(self, slot: str, question: Question) -> None:
        self._slots[slot].ask(*question.encoded())

    def ready(self, environment: str) -> bool:
        return environment in self._ready

    def slots(self) -> int:
        return len(self._slots)

    def alive(self) -> bool:
        return any(slot.is_alive() for slot in self._slots.values())

    def close(self) -> None:
        """End the slots. One in the middle of its work is left to the end of this process: its worker ends with it."""
        self._makers.shutdown(wait=False, cancel_futures=True)
        for slot in self._slots.values():
            slot.stop()
        for slot in self._slots.values():
            slot.join(timeout=2.0)


def gpu_name() -> str:
    """The GPU of this machine, as its driver names it."""
    for file in sorted(os.scandir("/proc/driver/nvidia/gpus"), key=lambda entry: entry.name):
        for line in open(os.path.join(file.path, "information"), encoding="utf-8"):  # noqa: SIM115
            if line.startswith("Model:"):
                return line.partition(":")[2].strip()
    return "gpu"

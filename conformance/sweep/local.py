"""Slots on this machine: threads, each with a worker in a process of its own. Needs nothing but the suite."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from conformance.errors import UsageError
from conformance.plan import cores
from conformance.sweep.columns import Place
from conformance.sweep.executor import Event, Free, Gone, Note, Question, Refused, Said
from conformance.sweep.slot import GPU_DRIVER, Slot, interpreter, machine
from conformance.sweep.spec import Environment

MAKERS = 2  # environments that are made at a time: uv itself downloads in parallel
HERE = "this machine"


class LocalExecutor:
    """Makes the environments in the background, in order, while the first that are ready are run."""

    def __init__(self, environments: Sequence[Environment], workers: int | None = None, gpu: bool = False) -> None:
        self._events: queue.Queue[Event] = queue.Queue()
        self._questions: dict[str, queue.Queue[Question | None]] = {}
        self._ready: set[str] = {one.name for one in environments if one.interpreter}
        self._threads: list[threading.Thread] = []
        self._makers = ThreadPoolExecutor(MAKERS)
        for one in environments:
            if one.name not in self._ready:
                self._makers.submit(self._make, one)
        number = workers or cores()
        places = [*[Place(machine())] * number, *([Place(machine(), gpu_name())] if gpu and GPU_DRIVER.exists() else [])]
        for index, place in enumerate(places, 1):
            self._begin(f"{'gpu' if place.gpu else 'slot'} {index}", place)

    def _begin(self, name: str, place: Place) -> None:
        self._questions[name] = queue.Queue()
        thread = threading.Thread(target=self._serve, args=(name, place), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _make(self, environment: Environment) -> None:
        try:
            interpreter(environment, lambda text: self._events.put(Note(f"{environment.name}: {text}")))
            self._ready.add(environment.name)
            self._events.put(Note(f"{environment.name}: environment ready"))
        except (LookupError, UsageError) as error:
            self._events.put(Refused(environment.name, f"the environment cannot be made: {error}"))
        except Exception as error:
            self._events.put(Refused(environment.name, f"the environment cannot be made: {type(error).__name__}: {error}"))

    def _serve(self, name: str, place: Place) -> None:
        """In the thread of a slot. The worker is started from it: a worker ends when the thread that started it does."""
        slot = Slot(bool(place.gpu))
        self._events.put(Free(name, HERE, place))
        try:
            while (question := self._questions[name].get()) is not None:
                column = question.column
                encoded = [msgspec.json.encode(part) for part in (column.environment, column.work)]
                for message in slot.ask(column.name, encoded[0], encoded[1], question.argv, question.message):
                    self._events.put(Said(name, [message]))
                self._events.put(Free(name, HERE, place))
        except Exception as error:  # a defect of the suite: the sweep must not wait for this slot forever
            self._events.put(Gone(name, f"the slot failed: {type(error).__name__}: {error}", node_died=False))
        finally:
            slot.close()

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
        self._questions[slot].put(question)

    def ready(self, environment: str) -> bool:
        return environment in self._ready

    def slots(self) -> int:
        return len(self._questions)

    def alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """End the slots. One in the middle of its work is left to the end of this process: its worker ends with it."""
        self._makers.shutdown(wait=False, cancel_futures=True)
        for questions in self._questions.values():
            questions.put(None)
        for thread in self._threads:
            thread.join(timeout=2.0)


def gpu_name() -> str:
    """The GPU of this machine, as its driver names it."""
    for file in sorted(os.scandir("/proc/driver/nvidia/gpus"), key=lambda entry: entry.name):
        for line in open(os.path.join(file.path, "information"), encoding="utf-8"):  # noqa: SIM115
            if line.startswith("Model:"):
                return line.partition(":")[2].strip()
    return "gpu"

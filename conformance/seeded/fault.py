"""What a seeded fault is, and the few ways in which one is put into a compiler."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import fx

from conformance.errors import UsageError
from conformance.stage import Stage
from conformance.verdict import Kind

FAULTS: dict[str, Fault] = {}


@dataclass(frozen=True)
class Fault:
    """`kinds` and `stage` say what the suite must find; `also` names a stage that is as right an answer, where two meet."""

    name: str
    stage: Stage
    kinds: tuple[Kind, ...]
    what: str
    micrographs: tuple[str, ...]
    inject: Callable[[], AbstractContextManager[None]]
    backend: str = "inductor"
    target: str = "cpu"
    also: tuple[Stage, ...] = ()
    culprit: str = ""  # what triage must name inside the stage, where it can

    def __enter__(self) -> Fault:
        opened = self.inject()
        opened.__enter__()
        _entered.setdefault(self.name, []).append(opened)
        return self

    def __exit__(self, *exception: Any) -> None:
        _entered[self.name].pop().__exit__(*exception)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.stage, *self.also)


_entered: dict[str, list[AbstractContextManager[None]]] = {}


def fault(
    stage: str,
    kinds: str,
    on: str,
    *,
    backend: str = "inductor",
    target: str = "cpu",
    also: str = "",
    culprit: str = "",
) -> Callable[[Callable[[], Iterator[None]]], Fault]:
    """Makes a fault of a generator: its name is the fault's, its docstring says what the compiler does wrong. `on` names the
    micrographs that use what is broken."""

    def make(function: Callable[[], Iterator[None]]) -> Fault:
        made = Fault(
            name=function.__name__,
            stage=Stage(stage),
            kinds=tuple(Kind(kind) for kind in kinds.split()),
            what=(inspect.getdoc(function) or "").split("\n")[0],
            micrographs=tuple(on.split()),
            inject=contextmanager(function),
            backend=backend,
            target=target,
            also=tuple(Stage(name) for name in also.split()),
            culprit=culprit,
        )
        FAULTS[made.name] = made
        return made

    return make


# ------------------------------------------------------------------------------------------- injecting


def find(path: str) -> tuple[Any, str]:
    """`torch._inductor.scheduler:Scheduler.can_fuse` → (class, name)"""
    module, _, rest = path.partition(":")
    importlib.import_module(
        "torch._inductor.compile_fx"
    )  # parts of torch import each other: by this door they all come in
    try:
        owner: Any = importlib.import_module(module)
        *parents, name = rest.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        getattr(owner, name)
    except (ImportError, AttributeError):
        raise UsageError(f"cannot seed this fault here: there is no {path.replace(':', '.')} in this version") from None
    return owner, name


@contextmanager
def swapped(path: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Put `make(original)` in the place of a function or method; static and class methods stay what they are."""
    owner, name = find(path)
    kept = inspect.getattr_static(owner, name)
    own = name in vars(owner)
    original = kept.__func__ if isinstance(kept, (staticmethod, classmethod)) else kept
    wrapped = make(original)
    if isinstance(kept, (staticmethod, classmethod)):
        wrapped = type(kept)(wrapped)
    setattr(owner, name, wrapped)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, kept)
        else:
            delattr(owner, name)


@contextmanager
def entries(table: dict[Any, Any], **_: Any) -> Iterator[dict[Any, Any]]:
    """Change a table of the compiler; it is put back afterwards."""
    kept = dict(table)
    try:
        yield table
    finally:
        table.clear()
        table.update(kept)


def retarget(gm: fx.GraphModule, old: Any, new: Any, most: int | None = None) -> fx.GraphModule:
    """Call `new` where the graph calls `old`."""
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is old and most != 0:
            node.target = new
            most = None if most is None else most - 1
    gm.recompile()
    return gm

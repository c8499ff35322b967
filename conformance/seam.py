"""The private and patched names of a compiler, in one table: resolved by name, wrapped once, loud when one is gone.

A compiler's seam is a `Seam` made from a table of `Name`s. Every use of a private name goes through it:

    seam.counters["inductor"]                          the object behind the table's key `counters`
    with seam.subscribe(schedule=around): ...          `around(proceed, *args, **kwargs)` is called in its place
    with seam.replace(is_available=lambda: True): ...  the name stands for something else inside

Each name says which stages it serves. Where a name is gone, exactly these stages are `unavailable`, with the name as
the reason.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from conformance.stage import STAGES, Stage


class MissingName(Exception):
    """A private name that the suite relies on is not there in this version of the compiler."""


@dataclass(frozen=True)
class Name:
    """One private name of a compiler.

    path    `package.module:Owner.attribute`; several, with `|` between, where versions differ: the first that exists
    stages  the stages that cannot be observed without it
    hook    it is wrapped while a compile is watched, and is called at least once for every program that is compiled
    """

    path: str
    stages: tuple[Stage, ...] = STAGES
    hook: bool = False


Around = Callable[..., Any]


@dataclass
class Subscription:
    """What a subscriber may ask afterwards: how often each wrapped name was called."""

    calls: Counter[str] = field(default_factory=Counter)


class Seam:
    """The table of one compiler. `resolving` is a context in which its modules can be imported, for a package that
    needs one."""

    def __init__(
        self,
        compiler: str,
        version: Callable[[], str],
        names: Mapping[str, Name],
        resolving: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        if taken := [key for key in names if hasattr(type(self), key)]:
            raise ValueError(f"a seam has an attribute {taken[0]} of its own: name the key otherwise")
        self.compiler, self.version, self.names, self.resolving = compiler, version, dict(names), resolving
        self._subscribers: dict[str, list[Around]] = {}
        self._patches: dict[str, Any] = {}

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__") or key not in self.__dict__.get("names", {}):
            raise AttributeError(key)
        owner, attribute = self.locate(key)
        return getattr(owner, attribute) if attribute else owner

    # ----------------------------------------------------------------------------------------- resolving

    def locate(self, key: str) -> tuple[Any, str]:
        """The owner of a name and the attribute that it is there; the attribute is "" where the name is a module."""
        with self.resolving():
            for path in self.names[key].path.split("|"):
                try:
                    return located(path)
                except (ImportError, AttributeError):
                    continue
        raise MissingName(self.gone(key))

    def shown(self, key: str) -> str:
        """The name as the compiler's own people write it."""
        return " or ".join(path.replace(":", ".") for path in self.names[key].path.split("|"))

    def gone(self, key: str) -> str:
        return f"{self.compiler} {self.version()} has no {self.shown(key)}"

    def unknown(self, key: str) -> str:
        """The reason why the stages that a missing name serves are unavailable."""
        return f"{self.gone(key)}: the suite does not know this version yet"

    def has(self, key: str) -> bool:
        """Does this version have the name? For names that serve no stage of their own: a capability."""
        try:
            self.locate(key)
        except MissingName:
            return False
        return True

    def missing(self) -> dict[str, str]:
        """The names that are gone: key → the line that says so."""
        return {key: self.gone(key) for key in self.names if not self.has(key)}

    def unavailable(self) -> dict[Stage, str]:
        """The stages that cannot be observed because a name is gone, each with the first such name."""
        reasons: dict[Stage, str] = {}
        for key, name in self.names.items():
            if name.stages and not self.has(key):
                for stage in name.stages:
                    reasons.setdefault(stage, self.unknown(key))
        return {stage: reasons[stage] for stage in STAGES if stage in reasons}

    # ----------------------------------------------------------------------------------------- wrapping

    @contextmanager
    def subscribe(self, subscription: Subscription | None = None, /, **around: Around) -> Iterator[Subscription]:
        """Call `around(proceed, *args, **kwargs)` in place of each named function. The newest subscriber is called
        first; its `proceed` leads to the next one and in the end to the compiler's own function. A name is patched
        once, however
        many subscribe."""
        subscription = subscription or Subscription()
        with ExitStack() as stack:
            for key, function in around.items():
                counting = _counting(key, function, subscription.calls)
                self._add(key, counting)
                stack.callback(self._remove, key, counting)
            yield subscription

    def _add(self, key: str, around: Around) -> None:
        if not self._subscribers.get(key):
            self._patches[key] = self._wrapped(key)
            self._patches[key].start()
        self._subscribers[key].append(around)

    def _remove(self, key: str, around: Around) -> None:
        self._subscribers[key].remove(around)
        if not self._subscribers[key]:
            self._patches.pop(key).stop()

    def _wrapped(self, key: str) -> Any:
        """A patch under which the name leads to its subscribers."""
        owner, attribute = self.locate(key)
        original = inspect.getattr_static(owner, attribute)
        function = original.__func__ if isinstance(original, (staticmethod, classmethod)) else original
        subscribers = self._subscribers.setdefault(key, [])

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            call = function
            for around in subscribers:
                call = functools.partial(around, call)
            return call(*args, **kwargs)

        made: Any = type(original)(wrapper) if isinstance(original, (staticmethod, classmethod)) else wrapper
        return patch.object(owner, attribute, made)

    @contextmanager
    def replace(self, **values: Any) -> Iterator[None]:
        """Inside, each name stands for another value. For what is read and not called; a function is better subscribed
        to."""
        with ExitStack() as stack:
            for key, value in values.items():
                owner, attribute = self.locate(key)
                stack.enter_context(patch.object(owner, attribute, value))
            yield


def located(path: str) -> tuple[Any, str]:
    """`torch._inductor.scheduler:Scheduler.codegen` → (the class, "codegen"); `torch._inductor.metrics` → (the module,
    "")."""
    module_name, _, rest = path.partition(":")
    owner: Any = importlib.import_module(module_name)
    if not rest:
        return owner, ""
    *parents, name = rest.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    getattr(owner, name)
    return owner, name


def _counting(key: str, function: Around, calls: Counter[str]) -> Around:
    def around(*args: Any, **kwargs: Any) -> Any:
        calls[key] += 1
        return function(*args, **kwargs)

    return around

"""One call of a pass inside a compile: the graph before and after, what matched, and how it ended."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from conformance.alarm import alarm
from conformance.backends.inductor.seam import seam as inductor
from conformance.errors import first_line
from conformance.graphs import copied, op_name, ops
from conformance.passes.form import form_of
from conformance.passes.seam import seam
from conformance.passes.subject import Subject

ENTRIES = ("lowering_pattern", "graph_pattern", "replacement_pattern")
LIMIT = 20.0  # seconds that a pass may take on one graph


class PassStopped(BaseException):
    """The pass took longer than its limit. No handler of the pass's own takes it for a failure."""


@dataclass
class Application:
    """before   the graph that the pass was given
    after    the graph that it left; None where it raised, or where the graph cannot even be copied
    matches  how often each pattern was replaced; for a pass that uses no pattern matcher, the calls that it put in
    nodes    the nodes of each match
    error    what it raised
    broken   why the graph that it left cannot be used, in one line
    """

    role: str
    before: fx.GraphModule
    after: fx.GraphModule | None = None
    matches: Counter[str] = field(default_factory=Counter)
    nodes: list[tuple[str, list[str]]] = field(default_factory=list)
    error: BaseException | None = None
    broken: str = ""
    seconds: float = 0.0

    @property
    def total(self) -> int:
        return sum(self.matches.values())

    @property
    def timed_out(self) -> bool:
        return isinstance(self.error, PassStopped)


def apply(subject: Subject, gm: fx.GraphModule, role: str = "inference", limit: float = LIMIT) -> Application:
    """Run the pass on this very graph. What it raises is kept, not raised."""
    done = Application(role, copied(gm))
    started = time.perf_counter()
    try:
        with limited(limit), counting(subject, done):
            subject.apply(gm.graph, is_inference=role == "inference")
    except (Exception, PassStopped) as error:
        done.error = error
    done.seconds = time.perf_counter() - started
    if done.error is None:
        _look_at(done, gm)
    return done


def _look_at(done: Application, gm: fx.GraphModule) -> None:
    done.broken = broken(gm.graph)
    try:
        done.after = copied(gm)
    except Exception as error:
        done.broken = done.broken or f"it cannot be copied: {first_line(error)}"
        return
    if not done.matches:
        done.matches = rewritten(done.before, done.after)


def rewritten(before: fx.GraphModule, after: fx.GraphModule) -> Counter[str]:
    """What a pass did that uses no pattern matcher: the calls that it put in, by op; where it put in none, those that it took out."""
    put_in = ops(after) - ops(before)
    if not put_in and form_of(before).canonical() != form_of(after).canonical():
        known = {node.name for node in before.graph.nodes}
        fresh = [n for n in after.graph.nodes if n.op.startswith("call") and n.name not in known]
        put_in = Counter(op_name(node.target) for node in fresh)  # of an op that it took out elsewhere
    taken_out = Counter({f"{name} removed": count for name, count in (ops(before) - ops(after)).items()})
    return put_in or taken_out


def broken(graph: fx.Graph) -> str:
    """Why the graph cannot be used, in one line; empty when it can."""
    order: dict[fx.Node, int] = {}
    for index, node in enumerate(graph.nodes):
        late = [other for other in node.all_input_nodes if other not in order]
        if late:
            return f"{node.name} uses {late[0].name}, which is computed later or was erased"
        order[node] = index
    if not any(node.op == "output" for node in graph.nodes):
        return "it returns nothing: the output node is gone"
    try:
        graph.lint()
    except Exception as error:
        return first_line(error)
    return ""


@contextmanager
def counting(subject: Subject, done: Application) -> Iterator[None]:
    """Every pattern that is replaced inside is counted."""

    def around(proceed: Callable[..., Any], entry: Any, match: Any, graph: Any, node: Any) -> Any:
        name = subject.entry_name(entry)
        done.matches[name] += 1
        done.nodes.append((name, [each.name for each in getattr(match, "nodes", [])]))
        return proceed(entry, match, graph, node)

    with inductor.subscribe(**{key: around for key in ENTRIES if inductor.has(key)}):
        yield
    for entry in subject.entries():  # zero is a count, too
        done.matches.setdefault(subject.entry_name(entry), 0)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `PassStopped` when it takes longer. Only the main thread can be interrupted; elsewhere there is no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise PassStopped(f"the pass was still running after {seconds:g} s")

    with alarm(seconds, stop):
        yield


class Failed(Exception):
    """The pass raised, or left a graph that cannot be used: the compile ends here."""


class Probe:
    """The pass as Inductor calls it: what it did is kept in `applications`."""

    def __init__(self, subject: Subject, role: Callable[[], str], limit: float = LIMIT) -> None:
        self.subject, self.role, self.limit = subject, role, limit
        self.applications: list[Application] = []
        self.reached: Callable[[fx.GraphModule], None] = lambda gm: None

    def __call__(self, graph: fx.Graph) -> None:
        gm = graph.owning_module
        assert isinstance(gm, fx.GraphModule)
        self.reached(gm)
        done = apply(self.subject, gm, self.role(), self.limit)
        self.applications.append(done)
        if done.error is not None:
            raise Failed(f"the pass raised {first_line(done.error)}")
        if done.broken:
            raise Failed(f"the pass broke the graph: {done.broken}")

    def custom_pass(self) -> Any:
        """What a setting of Inductor's takes. It has no `uuid`: nothing is cached."""
        if not seam.has("custom_pass"):
            return self
        body = {"__call__": lambda _, graph: self(graph), "uuid": lambda _: None}
        return type("ConformanceProbe", (seam.custom_pass,), body)()

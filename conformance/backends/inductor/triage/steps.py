"""The single steps of a compile that can be turned off: passes, patterns, decompositions, lowerings, fusions.

Every step has a key. Passes and patterns are numbered in the order in which they run ("pass 12"), and a step that is
left out keeps its number; decompositions and lowerings go by the op ("lowering aten.any.default"), fusions by the
nodes ("fusion op0 op2").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

from conformance.backends.inductor.seam import seam
from conformance.torch_seam import OpOverload
from conformance.triage.hold import Hold, Journal

Proceed = Callable[..., Any]


class Steps:
    """The subscribers that number steps and leave out those that are turned off."""

    def __init__(self, hold: Hold, journal: Journal, graph: Callable[[], int]) -> None:
        self.off, self.journal, self.graph = {*hold.off} - {"guards", "other backends"}, journal, graph
        self.recording = "steps" in hold.record
        self.passes = self.patterns = 0
        self.matched: list[str] = []  # patterns that were applied since the pass began
        self._written: set[str] = set()

    def subscribers(self) -> dict[str, Proceed]:
        if not self.recording and not self.off:
            return {}
        patterns = dict.fromkeys(("lowering_pattern", "graph_pattern", "replacement_pattern"), self.pattern)
        passes = dict.fromkeys(("graph_pass", "graph_module_pass"), self.run_pass)
        return {**passes, **patterns, "disable_step": self.disable, "can_fuse": self.can_fuse}

    def _step(self, kind: str, key: str, name: str, once: bool = True, **facts: Any) -> bool:
        """Write the step down, once if it goes by its name. Returns whether it is turned off."""
        if self.recording and not (once and key in self._written):
            self._written.add(key)
            self.journal.write("step", kind=kind, key=key, name=name, graph=self.graph(), **facts)
        return key in self.off

    # ------------------------------------------------------------------------------------------- graph passes

    def run_pass(self, proceed: Proceed, observer: Any, function: Any) -> Any:
        """A pass over a graph. Only those that changed something are written down."""
        key, self.passes = f"pass {self.passes}", self.passes + 1
        subsystem = getattr(observer, "subsystem", None) or ""
        name = f"{subsystem}:{observer.passname}".lstrip(":")
        if {key, f"pass {name}"} & self.off:
            return None
        before = _digest(observer.gm) if self.recording else ""
        self.matched = []
        try:
            result = proceed(observer, function)
        except Exception:
            self._step("pass", key, name, False, patterns=self.matched)
            raise
        if self.recording and _digest(observer.gm) != before:
            self._step("pass", key, name, False, patterns=self.matched)
        return result

    def pattern(self, proceed: Proceed, entry: Any, match: Any, graph: Any, node: Any) -> Any:
        """A pattern that matched and is about to be replaced."""
        key, self.patterns = f"pattern {self.patterns}", self.patterns + 1
        name = pattern_name(entry)
        self.matched.append(name)
        nodes = [str(n) for n in getattr(match, "nodes", [])][:12]
        if self._step("pattern", key, name, False, nodes=nodes) or f"pattern {name}" in self.off:
            return None
        return proceed(entry, match, graph, node)

    # --------------------------------------------------------------------------- decompositions, lowerings

    def disable(self, proceed: Proceed, cls: Any, backend: str, subsystem: str, debug_info: Any = None) -> bool:
        """torch asks at every decomposition and lowering whether it is turned off; its own bisector answers in the
        same place."""
        if subsystem == "decomposition" and debug_info is not None:
            name = op_name(debug_info())
            return self._step("decomposition", f"decomposition {name}", name)
        if subsystem == "lowerings":
            node = _current_node()
            name = str(node.target) if node is not None else str(debug_info and debug_info())
            return self._step("lowering", f"lowering {name}", name)
        return bool(proceed(cls, backend, subsystem, debug_info))

    # -------------------------------------------------------------------------------------------------- fusion

    def can_fuse(self, proceed: Proceed, scheduler: Any, first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
        result = proceed(scheduler, first, second, *args, **kwargs)
        if not result:
            return result
        one, other = sorted(map(_buffer_names, (first, second)))
        pairs = {f"fusion {a} {b}" for a in one for b in other} | {f"fusion {b} {a}" for a in one for b in other}
        if pairs & self.off or "fusion" in self.off:
            return False
        self._step(
            "fusion", f"fusion {one[0]} {other[0]}", f"{'+'.join(one)} with {'+'.join(other)}", ops=_ops(first, second)
        )
        return result


def pattern_name(entry: Any) -> str:
    """A pattern by torch's own name for it (2.14 on), or by the function that replaces it or that it was traced from."""
    handler = getattr(entry, "handler", None)
    for function in (getattr(handler, "__wrapped__", handler), _traced_from(entry)):
        if name := getattr(entry, "pattern_name", None) or getattr(function, "__name__", ""):
            return str(name)
    return type(entry).__name__


def _traced_from(entry: Any) -> Any:
    """The function that the pattern of a replacement was traced from, which only its check still knows."""
    check = getattr(entry, "extra_check", None)
    names = getattr(getattr(check, "__code__", None), "co_freevars", ())
    known = dict(zip(names, getattr(check, "__closure__", None) or (), strict=False))
    search = known["search_fn"].cell_contents if "search_fn" in known else None
    return getattr(search, "func", search)  # a partial has no name of its own


def op_name(text: str) -> str:
    """`<OpOverload(op='aten.silu', overload='default')>` → `aten.silu.default`"""
    if text.startswith("<OpOverload("):
        op, _, overload = text.removeprefix("<OpOverload(op='").partition("', overload='")
        return f"{op}.{overload.removesuffix(')>').rstrip(chr(39))}"
    return text


def _current_node() -> fx.Node | None:
    node = seam.virtualized.current_node
    return node if isinstance(node, fx.Node) else None


def _digest(gm: Any) -> int:
    """Changes whenever a pass changes the graph."""
    parts = []
    for node in gm.graph.nodes:
        parts.append((node.name, str(node.target), str(node.args), str(node.kwargs)))
    return hash(tuple(parts))


def _buffer_names(node: Any) -> list[str]:
    return sorted(part.get_name() for part in node.get_nodes())


def _ops(*nodes: Any) -> list[str]:
    """The ATen ops that fused nodes stand for."""
    found = []
    for part in (part for node in nodes for part in node.get_nodes()):
        for origin in getattr(getattr(part, "node", None), "origins", None) or ():
            if isinstance(origin.target, OpOverload):
                found.append(str(origin.target))
    return list(dict.fromkeys(found))

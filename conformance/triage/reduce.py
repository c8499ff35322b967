"""Shrink a failing graph while the same finding, by stage and kind, remains.

The graph is the captured one, and every value inside it is known from eager, so that any run of nodes can be tried on its
own with the values it really gets. First the nodes that the culprit names, alone; then halves, and halves of halves (delta
debugging); then outputs, then sizes, then dtypes and constants. Each try is one compile.

Where any op may be the wrong one, all that differ are tried side by side in one compile, each on its own values.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from conformance import graphs, oracle
from conformance.backends.base import Case
from conformance.examine import Examination
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.torch_seam import pytree
from conformance.triage.micrograph_subject import wrap

Signature = tuple[Stage, str]
Place = tuple[int, int | str]  # a node by its number, an argument by its position or name
Number = int | float
FEW, MANY = 12, 60  # groups of ops that are compiled side by side, at first and then
PLAINER, PLAINER_DEAR = 12, 6  # tries at plainer dtypes and constants; and where a try is a C++ compiler's run
CALLS = ("call_function", "call_method", "call_module")


@dataclass
class Reduced:
    gm: fx.GraphModule
    inputs: tuple[Any, ...]
    nodes: int
    before: int
    tries: int = 0
    seconds: float = 0.0
    history: list[str] = field(default_factory=list)


def size(gm: fx.GraphModule) -> int:
    return sum(node.op in CALLS for node in gm.graph.nodes)


# ------------------------------------------------------------------------------------------- predicate


def signature(
    backend: Any,
    gm: fx.GraphModule,
    inputs: tuple[Any, ...],
    target: str,
    wanted: Stage,
    look: type[Examination] = Examination,
) -> Signature | None:
    """The stage and kind of the first finding of a graph; None where nothing is wrong. Cheaper than the whole suite: one
    compile, one call, and the ladder only if that differs. Only where capture is at fault is it captured again and again."""
    try:
        cls = wrap(gm, inputs, "reduced")
    except Exception:
        return None
    stages = STAGES[0 if wanted is Stage.CAPTURE else 1 : Stage.RUNTIME.order]
    examination = look(Case(cls, Target.parse(target)), backend, stages)
    try:
        trace = examination.trace()
    except Exception:
        return None
    for stage in STAGES:
        seen = trace.observations.get(stage)
        if seen is not None and seen.findings:
            return stage, seen.findings[0].kind.value
    return None


# -------------------------------------------------------------------------------------------- subgraph


class _Values(fx.Interpreter):
    """The value of every node, as it was when the node ran."""

    def __init__(self, gm: fx.GraphModule) -> None:
        super().__init__(gm)
        self.seen: dict[fx.Node, Any] = {}

    def run_node(self, node: fx.Node) -> Any:
        value = super().run_node(node)
        self.seen[node] = pytree.tree_map_only(
            torch.Tensor, lambda t: t.detach().clone(memory_format=torch.preserve_format), value
        )
        return value


def values_of(gm: fx.GraphModule, inputs: tuple[Any, ...]) -> dict[fx.Node, Any]:
    keeper = _Values(gm)
    torch.manual_seed(oracle.SEED)
    with torch.no_grad():
        keeper.run(*oracle.clone_inputs(inputs))
    return keeper.seen


def cut(
    gm: fx.GraphModule, kept: Sequence[fx.Node], values: dict[fx.Node, Any]
) -> tuple[fx.GraphModule, tuple[Any, ...]] | None:
    """A graph of these nodes alone: what they read from others becomes an input, what nobody among them reads an output."""
    chosen = set(kept)
    graph = fx.Graph()
    table: dict[Any, Any] = {}
    inputs: list[Any] = []

    def outside(node: fx.Node) -> Any:
        value = values[node]
        if not isinstance(value, torch.Tensor):
            return value
        table[node] = graph.placeholder(f"x{len(inputs)}")
        inputs.append(value)
        return table[node]

    def look(node: fx.Node) -> Any:
        return table[node] if node in table else outside(node)

    for node in kept:
        for source in node.all_input_nodes:
            if source not in chosen and source not in table and isinstance(values.get(source), torch.Tensor):
                outside(source)
    try:
        for node in kept:
            table[node] = graph.node_copy(node, look)
    except KeyError:
        return None
    ends = [n for n in kept if not any(user in chosen for user in n.users) and isinstance(values.get(n), torch.Tensor)]
    if not ends or not inputs:
        return None
    graph.output(tuple(table[n] for n in ends))
    found = fx.GraphModule(gm, graph)
    return found, tuple(inputs)


# --------------------------------------------------------------------------------------------- reduce


class Reducer:
    """`holds` says of a smaller graph whether the same finding remains; `sure`, of the smallest, whether it really is the same,
    where `holds` is a cheaper question; `probe` runs a graph through the compiler, with or without fusing. Sizes are cut to `small`."""

    def __init__(
        self,
        gm: fx.GraphModule,
        inputs: tuple[Any, ...],
        holds: Callable[[fx.GraphModule, tuple[Any, ...]], bool],
        limit: float = 180.0,
        probe: Callable[[fx.GraphModule, tuple[Any, ...], bool], Sequence[Any]] | None = None,
        sure: Callable[[fx.GraphModule, tuple[Any, ...]], bool] | None = None,
        small: int = 5,
    ) -> None:
        self.gm, self.inputs, self.holds, self.probe, self.sure, self.small = gm, inputs, holds, probe, sure, small
        self.until = time.monotonic() + limit
        self.values = values_of(gm, inputs)
        self.calls = [node for node in gm.graph.nodes if node.op in CALLS]
        self.best = Reduced(gm, inputs, len(self.calls), len(self.calls))
        self._alone: list[fx.Node] | None = None
        self._together: list[list[fx.Node]] | None = None
        self._unprobed = False
        self.slipped = False  # the cheap question led to another finding than the one that was asked for

    @property
    def probed(self) -> bool:
        """Were the ops compiled side by side, and could they be?"""
        return self._alone is not None and not self._unprobed

    def run(self, suspects: Sequence[str] = ()) -> Reduced:
        start = time.monotonic()
        self._search(suspects)
        if not self._plainer() and self.sure is not None and not self.sure(self.best.gm, self.best.inputs):
            self.slipped = True
            self._start_over()
            self._search(suspects)
            self._plainer()
        self.best.seconds = time.monotonic() - start
        return self.best

    def _search(self, suspects: Sequence[str]) -> None:
        nodes = self._suspected(suspects) or self._halved(self.calls)
        self._minimal(nodes)
        self._smaller_sizes()

    def _start_over(self) -> None:
        """The cheap question led to another finding: ask the dear one all the way."""
        assert self.sure is not None
        holds, sure = self.holds, self.sure
        self.holds, self.sure = (lambda gm, inputs: holds(gm, inputs) and sure(gm, inputs)), None
        tries = self.best.tries
        self.best = Reduced(self.gm, self.inputs, len(self.calls), len(self.calls), tries)

    def _try(self, nodes: Sequence[fx.Node], why: str, short: bool = False) -> bool:
        if time.monotonic() > self.until:
            return False
        made = cut(self.gm, nodes, self.values)
        if made is None:
            return False
        gm, inputs = made
        if short:
            inputs = _all_shortened(inputs, self.small)
            if _same_sizes(inputs, made[1]) or not _runs(gm, inputs):
                return False
        self.best.tries += 1
        if not self.holds(gm, inputs):
            return False
        self.best.history.append(f"{why}: {len(nodes)} nodes")
        self.best.gm, self.best.inputs, self.best.nodes = gm, inputs, len(nodes)
        return True

    def _suspected(self, suspects: Sequence[str]) -> list[fx.Node] | None:
        """What the culprit names, each alone. Where that is many ops (a kernel's), those that a probe finds wrong."""
        words = [_word(name) for name in suspects]
        named = [n for n in self._distinct() if any(w and (w in _called(n) or _called(n) in w) for w in words)]
        groups = [[node] for node in named[:3]]
        if self._alone is not None or (len(named) != 1 and self.probe is not None):
            groups = [[node] for node in self.wrong_alone()[:3]] or self.wrong_together()[:3] or groups
        for group in groups:
            why = "a suspect alone" if len(group) == 1 else "suspects together"
            if self._try(group, f"{why}, small", short=True) or self._try(group, why):
                return group
        return None

    def wrong_alone(self) -> list[fx.Node]:
        """The ops that are wrong on their own."""
        if self._alone is None:
            self._alone = self._probed(self._distinct())
        return self._alone

    def _distinct(self) -> list[fx.Node]:
        """One node for each op and shapes."""
        found: dict[str, fx.Node] = {}
        for node in self.calls:
            found.setdefault(self._kind(node), node)
        return list(found.values())

    def _kind(self, node: fx.Node) -> str:
        shapes = [tuple(v.shape) for v in map(self.values.get, node.all_input_nodes) if isinstance(v, torch.Tensor)]
        constants = [a for a in node.args if not isinstance(a, fx.Node)]
        return f"{node.target}{shapes}{constants}{node.kwargs}"

    def _probed(self, nodes: Sequence[fx.Node]) -> list[fx.Node]:
        """The ops that are wrong with nothing fused: all in one compile, none reading from another."""
        return [group[0] for group in self._side_by_side([[node] for node in nodes], fused=False)]

    def wrong_together(self) -> list[list[fx.Node]]:
        """Where no op is wrong alone: ops that are when fused with their own parts, with a reader, or with one that reads the same."""
        if self._together is None:
            self._together = self._fused()
        return self._together

    def _fused(self) -> list[list[fx.Node]]:
        pairs: dict[Any, list[fx.Node]] = {}
        for place, second in enumerate(self.calls):
            for first in self.calls[:place]:
                if first in second.all_input_nodes or {*first.all_input_nodes} & {*second.all_input_nodes}:
                    pairs.setdefault(
                        (self._kind(first), self._kind(second), first in second.all_input_nodes), [first, second]
                    )
        groups = [[node] for node in self._distinct()] + list(pairs.values())
        rounds = groups[:FEW], groups[FEW:MANY]
        return next((wrong for some in rounds if some and (wrong := self._side_by_side(some, fused=True))), [])

    def _side_by_side(self, groups: Sequence[list[fx.Node]], fused: bool) -> list[list[fx.Node]]:
        """Of these groups of nodes, all in one compile and none reading from another, those that are wrong."""
        assert self.probe is not None
        graph = fx.Graph()
        inputs: list[Any] = []
        ends: list[tuple[list[fx.Node], fx.Node, Any]] = []
        for group in groups:
            if any(not self._tensors(node) for node in group):
                continue
            table: dict[fx.Node, Any] = {}
            for node in group:
                for source in node.all_input_nodes:
                    value = self.values[source]
                    if source not in table:
                        table[source] = (
                            graph.placeholder(f"x{len(inputs)}") if isinstance(value, torch.Tensor) else value
                        )
                        inputs += [value] if isinstance(value, torch.Tensor) else []
                table[node] = graph.node_copy(node, table.__getitem__)
            ends += [(group, node, table[node]) for node in group if not any(user in group for user in node.users)]
        graph.output(tuple(end for _, _, end in ends))
        self.best.tries += 1
        try:
            got = self.probe(fx.GraphModule(self.gm, graph), tuple(inputs), fused)
        except Exception:  # an op that does not compile hides the others: go on without the probe
            self._unprobed = True
            return []
        wrong = [group for (group, node, _), value in zip(ends, got, strict=True) if _differs(value, self.values[node])]
        self.best.history.append(f"{len(ends)} ops side by side{', fused' if fused else ''}: {len(wrong)} wrong")
        return wrong

    def _tensors(self, node: fx.Node) -> bool:
        """One tensor, computed from tensors."""
        read = any(isinstance(self.values.get(n), torch.Tensor) for n in node.all_input_nodes)
        return read and isinstance(self.values.get(node), torch.Tensor)

    def _halved(self, nodes: list[fx.Node]) -> list[fx.Node]:
        """While one half fails on its own, go on with it."""
        while len(nodes) > 1:
            middle = len(nodes) // 2
            half = next((h for h in (nodes[:middle], nodes[middle:]) if self._try(h, "half")), None)
            if half is None:
                third = nodes[len(nodes) // 4 : len(nodes) - len(nodes) // 4]
                half = third if len(third) < len(nodes) and self._try(third, "middle") else None
            if half is None:
                return nodes
            nodes = half
        return nodes

    def _minimal(self, nodes: list[fx.Node]) -> list[fx.Node]:
        """Delta debugging: leave out pieces, smaller and smaller ones."""
        piece = max(len(nodes) // 2, 1)
        if nodes in (self._together or ()):
            return nodes  # each of the two alone was among those that were looked at
        while len(nodes) > 1:
            for start in range(0, len(nodes), piece):
                rest = nodes[:start] + nodes[start + piece :]
                if rest and self._try(rest, "without a piece"):
                    nodes = rest
                    break
            else:
                if piece == 1 or time.monotonic() > self.until:
                    return nodes
                piece = max(piece // 2, 1)
        return nodes

    def _smaller_sizes(self) -> None:
        """Cut every size that a dim of the inputs has, as long as the graph still runs and still fails: all at once, or, where
        a try costs little, one by one."""
        smaller = _all_shortened(self.best.inputs, self.small)
        if _same_sizes(smaller, self.best.inputs) or self._smaller(smaller, f"sizes → {self.small}") or self.small > 5:
            return
        for length in sorted(
            {n for x in self.best.inputs if isinstance(x, torch.Tensor) for n in x.shape if n > 8}, reverse=True
        )[:2]:
            for shorter in (self.small, length // 2):
                if self._smaller(
                    tuple(_shortened(x, length, shorter) for x in self.best.inputs), f"size {length} → {shorter}"
                ):
                    break

    def _smaller(self, inputs: tuple[Any, ...], why: str) -> bool:
        if time.monotonic() > self.until or not _runs(self.best.gm, inputs):
            return False
        return self._accepted(self.best.gm, inputs, why)

    def _accepted(self, gm: fx.GraphModule, inputs: tuple[Any, ...], why: str) -> bool:
        self.best.tries += 1
        if not self.holds(gm, inputs):
            return False
        self.best.gm, self.best.inputs = gm, inputs
        self.best.history.append(why)
        return True

    # ----------------------------------------------------------------------------------------- plainer

    def _plainer(self) -> bool:
        """Plain dtypes and constants, where they do not matter. True: some are, and the finding is certainly the same; else
        all is as it was, and nothing is said of it."""
        gm, inputs, said = self.best.gm, self.best.inputs, len(self.best.history)
        last = self.best.tries + (PLAINER_DEAR if self.small > 5 else PLAINER)
        for _ in (
            itertools.chain(self._plainer_dtypes(), self._plainer_constants()) if time.monotonic() < self.until else ()
        ):
            if self.best.tries >= last or time.monotonic() > self.until:
                break
        if len(self.best.history) == said:
            return False
        if self._same_finding():
            return True
        self.best.gm, self.best.inputs = gm, inputs
        del self.best.history[said:]
        return False

    def _same_finding(self) -> bool:
        """Where the dear question is not asked since the probe has answered it, the probe is asked again of this graph: with other
        numbers it may be another stage's."""
        gm, inputs = self.best.gm, self.best.inputs
        if self.sure is not None:
            return self.sure(gm, inputs)
        if self.probe is None or not self.probed:
            return True
        want = oracle.run(gm, oracle.clone_inputs(inputs)).outputs
        try:
            got = pytree.tree_leaves(self.probe(gm, inputs, False))
        except Exception:
            return False
        return any(map(_differs, got, want)) == bool(self.wrong_alone())

    def _plainer_dtypes(self) -> Iterator[None]:
        """One step is one try: all inputs at once, then each."""
        odd = [number for number, x in enumerate(self.best.inputs) if _plain_dtype(x) is not None]
        for some in ([odd] if len(odd) > 1 else []) + [[number] for number in odd]:
            inputs = tuple(x.to(_plain_dtype(x)) if n in some else x for n, x in enumerate(self.best.inputs))
            if not self._as_sound(self.best.gm, inputs):
                continue
            why = ", ".join(f"input {n}: {self.best.inputs[n].dtype} → {inputs[n].dtype}" for n in some)
            done = self._accepted(self.best.gm, inputs, why)
            yield
            if done and some == odd:
                return

    def _plainer_constants(self) -> Iterator[None]:
        """One step is one try: all constants at once, then each, the plainest number first."""
        odd = _odd_constants(self.best.gm)
        plain = {place: _plain_numbers(value) for place, value in odd.items()}
        rounds = [{place: numbers[0] for place, numbers in plain.items()}] if len(odd) > 1 else []
        ranks = range(max(map(len, plain.values()), default=0))
        rounds += [{place: numbers[rank]} for rank in ranks for place, numbers in plain.items() if rank < len(numbers)]
        settled: set[Place] = set()
        for changes in rounds:
            gm = _with_constants(self.best.gm, changes)
            if settled & {*changes} or not self._as_sound(gm, self.best.inputs):
                continue
            if self._accepted(gm, self.best.inputs, ", ".join(f"{odd[place]} → {to}" for place, to in changes.items())):
                settled |= {*changes}
            yield

    def _as_sound(self, gm: fx.GraphModule, inputs: tuple[Any, ...]) -> bool:
        """It runs, gives the same shapes, and nothing that is not finite unless there was before: else one defect is easily left
        for another, that of zero divided by zero."""
        now = oracle.run(gm, oracle.clone_inputs(inputs))
        was = oracle.run(self.best.gm, oracle.clone_inputs(self.best.inputs))
        if now.error is not None or now.strides != was.strides:
            return False
        pairs = [(new, old) for new, old in zip(now.outputs, was.outputs, strict=True) if isinstance(old, torch.Tensor)]
        return all(new.shape == old.shape and (_finite(new) or not _finite(old)) for new, old in pairs)


def _all_shortened(inputs: tuple[Any, ...], small: int) -> tuple[Any, ...]:
    """Sizes a little above `small` are left alone: nothing would be gained."""
    for length in sorted({n for x in inputs if isinstance(x, torch.Tensor) for n in x.shape if n > small + 3}):
        inputs = tuple(_shortened(x, length, small) for x in inputs)
    return inputs


def _same_sizes(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return all(not isinstance(x, torch.Tensor) or x.shape == y.shape for x, y in zip(a, b, strict=True))


def _word(name: str) -> str:
    """`aten._softmax.default` → `softmax`"""
    parts = name.split(".")
    return (parts[1] if parts[0] in ("aten", "prims", "operator") and len(parts) > 1 else parts[-1]).strip("_")


def _called(node: fx.Node) -> str:
    return _word(graphs.op_name(node.target))


def _differs(got: Any, want: torch.Tensor) -> bool:
    if not isinstance(got, torch.Tensor) or got.dtype != want.dtype or got.shape != want.shape:
        return True
    return any(True for _ in oracle.value_differences("", got.detach(), want))


def _shortened(value: Any, length: int, shorter: int) -> Any:
    if not isinstance(value, torch.Tensor) or length not in value.shape:
        return value
    for dim, have in enumerate(value.shape):
        if have == length:
            value = value.narrow(dim, 0, shorter)
    return value.clone(memory_format=torch.preserve_format)


def _runs(gm: fx.GraphModule, inputs: tuple[Any, ...]) -> bool:
    return oracle.run(gm, oracle.clone_inputs(inputs)).error is None


def _finite(value: torch.Tensor) -> bool:
    """Eight-bit floats cannot be asked themselves."""
    return bool((value.double() if value.is_floating_point() else value).isfinite().all())


def _plain_dtype(value: Any) -> torch.dtype | None:
    """The dtype that people use where it does not matter; None where it is that already, or of another family."""
    if not isinstance(value, torch.Tensor):
        return None
    plain = {True: torch.float32, False: torch.int64}[value.is_floating_point()]
    return None if value.dtype in (plain, torch.bool) or value.is_complex() else plain


def _odd_constants(gm: fx.GraphModule) -> dict[Place, Number]:
    """Numbers of more than one digit among the arguments. Those inside lists and slices are sizes and indices."""
    found: dict[Place, Number] = {}
    for number, node in enumerate(gm.graph.nodes):
        if node.op in CALLS and _called(node) != "getitem":
            given = [
                *enumerate(node.args),
                *((k, v) for k, v in node.kwargs.items() if k not in ("dim", "axis", "dims")),
            ]
            found |= {(number, where): value for where, value in given if _is_odd(value)}
    return found


def _is_odd(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and float(f"{value:.0e}") != value


def _plain_numbers(value: Number) -> list[Number]:
    """Of the same type, the plainest first."""
    kind = type(value)
    return list(dict.fromkeys(kind(n) for n in (1, 2, float(f"{value:.0e}"), 0.5, 0) if kind(n) == n))


def _with_constants(gm: fx.GraphModule, changes: dict[Place, Number]) -> fx.GraphModule:
    graph = copy.deepcopy(gm.graph)
    nodes = list(graph.nodes)
    for (number, where), value in changes.items():
        if isinstance(where, int):
            nodes[number].update_arg(where, value)
        else:
            nodes[number].update_kwarg(where, value)
    return fx.GraphModule(gm, graph)

"""Two forms of a program, compared on the inputs of the failing call: ops against their decompositions, a graph before a pass
against the graph after it. Nothing is compiled."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from conformance import graphs, oracle
from conformance.graph_runner import GraphRunner
from conformance.torch_seam import TorchDispatchMode, pytree, schema_of
from conformance.triage.culprit import Culprit


class _Against(TorchDispatchMode):
    """Every ATen op that the program calls, held against its decomposition on the same values."""

    def __init__(self, table: dict[Any, Any]) -> None:
        super().__init__()
        self.table = table
        self.wrong: dict[Any, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        pure = _functional(func)
        decomposition = self.table.get(pure)
        if decomposition is not None and pure not in self.wrong:
            self._compare(pure, decomposition, args, kwargs)
        return func(*args, **kwargs)

    def _compare(self, func: Any, decomposition: Any, args: Any, kwargs: Any) -> None:
        random = torch.Tag.nondeterministic_seeded in func.tags
        state = torch.get_rng_state()
        try:
            want = func(*args, **kwargs)
            torch.set_rng_state(state)
            got = decomposition(*args, **kwargs)
        except Exception as error:
            if "NotImplemented" not in str(error):
                self.wrong[func] = f"it raises {type(error).__name__}"
            return
        finally:
            torch.set_rng_state(state)
        if got is NotImplemented or random:
            return
        for g, w in zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=False):
            if isinstance(w, torch.Tensor) and isinstance(g, torch.Tensor) and w.numel():
                if g.dtype != w.dtype or g.shape != w.shape:
                    self.wrong[func] = f"it gives {g.dtype} {tuple(g.shape)}, the op gives {w.dtype} {tuple(w.shape)}"
                    return
                for difference in oracle.value_differences("", g.detach(), w.detach()):
                    self.wrong[func] = difference.detail
                    return


def _functional(op: Any) -> Any:
    """What functionalization makes of an op that writes: `lerp_` is decomposed as `lerp`. None where there is no such op."""
    if not schema_of(op).is_mutable:
        return op
    name, _, overload = op.name().removeprefix("aten::").partition(".")
    found = getattr(getattr(torch.ops.aten, name.rstrip("_"), None), overload or "default", None)
    return None if found is None or schema_of(found).is_mutable else found


def wrong_decompositions(module: Any, inputs: tuple[Any, ...], table: dict[Any, Any]) -> Culprit | None:
    """The first op of the program whose decomposition does not compute what the op computes."""
    wants_grad = any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
    with torch.set_grad_enabled(wants_grad), _Against(dict(table)) as mode:
        oracle.run(module, inputs, module)
    if not mode.wrong:
        return None
    op, why = next(iter(mode.wrong.items()))
    return Culprit("decomposition", str(op), why, [str(op)])


def wrong_pass(passes: list[tuple[str, fx.GraphModule]], before: fx.GraphModule, inputs: list[Any]) -> Culprit | None:
    """Of the graphs after each pass: the first pass after which the graph computes something else, writes less, or has lost its metadata."""
    want = run(before, inputs)
    previous, last = before, "(what runs before the first observed pass)"
    for name, gm in passes:
        if placeholders(gm) != placeholders(before):
            continue
        why = changed(gm, previous, inputs, want)
        if why:
            between = "" if last.startswith("(") and name == passes[0][0] else f", after {last}"
            return Culprit("pass", name, f"{why}{between}", ops_gone(previous, gm))
        previous, last = gm, name
    return None


def placeholders(gm: fx.GraphModule) -> int:
    """How many inputs a graph has."""
    return sum(node.op == "placeholder" for node in gm.graph.nodes)


def changed(gm: fx.GraphModule, previous: fx.GraphModule, inputs: list[Any], want: Any) -> str:
    """What is wrong with a graph that was right before a pass, in one line; `want` is what it computed. Empty: nothing is."""
    if len(graphs.without_metadata(gm)) > len(graphs.without_metadata(previous)):
        return f"{len(graphs.without_metadata(gm))} ops no longer say their shape and dtype"
    if graphs.written_inputs(gm) < graphs.written_inputs(previous):
        return "a write into an input is gone"
    got = run(gm, inputs)
    if isinstance(got, Exception) or isinstance(want, Exception):
        return (
            f"the graph no longer runs: {type(got).__name__}"
            if isinstance(got, Exception) and not isinstance(want, Exception)
            else ""
        )
    for index, (g, w) in enumerate(zip(got, want, strict=False)):
        if isinstance(w, torch.Tensor) and isinstance(g, torch.Tensor):
            for difference in oracle.value_differences(f"output {index}", g, w):
                return f"the graph computes something else: {difference}"
    return ""


def run(gm: fx.GraphModule, inputs: list[Any]) -> Any:
    """Outputs, and the inputs as the graph left them."""
    values = list(oracle.clone_inputs(tuple(inputs)))
    torch.manual_seed(oracle.SEED)
    try:
        with torch.no_grad():
            result = GraphRunner(gm).run(*values, enable_io_processing=False)
    except Exception as error:
        return error
    return [*pytree.tree_leaves(result), *(v for v in values if isinstance(v, torch.Tensor))]


def ops_gone(before: fx.GraphModule, after: fx.GraphModule) -> list[str]:
    """The ops that one graph calls more often than the other, in order."""
    old, new = graphs.ops(before), graphs.ops(after)
    return sorted(name for name in {*old, *new} if old[name] != new[name])


class _Values(GraphRunner):
    """Keeps the value of every node, as it was when the node ran."""

    def __init__(self, gm: fx.GraphModule) -> None:
        super().__init__(gm)
        self.values: dict[fx.Node, Any] = {}

    def run_node(self, node: fx.Node) -> Any:
        value = super().run_node(node)
        self.values[node] = pytree.tree_map_only(
            torch.Tensor, lambda t: t.detach().clone(memory_format=torch.preserve_format), value
        )
        return value


def node_values(gm: fx.GraphModule, inputs: tuple[Any, ...], nested: bool = True) -> dict[fx.Node, Any]:
    """The value of every node of a graph. `nested`: the inputs are the caller's, not the flat ones."""
    keeper = _Values(gm)
    torch.manual_seed(oracle.SEED)
    with torch.no_grad():
        keeper.run(*oracle.clone_inputs(inputs), enable_io_processing=nested)
    return keeper.values

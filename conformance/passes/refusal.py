"""Why a pattern does not match a graph: the nearest miss, and where its structure is there, why torch refuses it all the same.

A pattern that was registered by example is matched twice: coarsely, with every constant left open, and then traced anew with the sizes and
dtypes of the candidate. The second trace says which constant, dtype or shape differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

from conformance.errors import first_line
from conformance.passes.form import Form, form_of
from conformance.passes.near_miss import Difference, NearMiss, Walk, nearest
from conformance.passes.pattern import Pattern, pattern_of
from conformance.passes.seam import seam
from conformance.passes.subject import Subject


def explain(subject: Subject, gm: fx.GraphModule) -> list[NearMiss]:
    """Each pattern of the pass: how near the graph comes to it, and the first thing that differs."""
    form = form_of(gm)
    return [
        _explain(entry, pattern_of(entry.pattern, subject.entry_name(entry)), gm, form) for entry in subject.entries()
    ]


def _explain(entry: Any, pattern: Pattern, gm: fx.GraphModule, form: Form) -> NearMiss:
    miss = nearest(pattern, form)
    if miss.matched < miss.calls or any(d.kind in ("users", "value", "op", "order") for d in miss.differences):
        return miss
    for node in reversed(list(gm.graph.nodes)):
        if form[node.name].kind == "call" and form[node.name].target in pattern.outputs[0].targets:
            walk = Walk(pattern, form).begin(pattern.outputs[0], form[node.name]).result()
            if walk.matched == walk.calls and not any(d.kind == "users" for d in walk.differences):
                found = _refused(entry, pattern, node, form)
                if found is not None:
                    return NearMiss(miss.pattern, miss.calls, walk.matched, walk.nodes, [found, *walk.differences])
    return miss


def _refused(entry: Any, pattern: Pattern, node: fx.Node, form: Form) -> Difference | None:
    """Why torch does not take this candidate; None where it does."""
    match = entry.pattern.match(node)
    if not match:
        return _of_text(str(match), node, form)
    crossing = _crosses_a_write(node.graph, match.nodes)
    if crossing is not None:
        return crossing
    return _by_its_check(entry, pattern, match, node, form)


def _of_text(said: str, node: fx.Node, form: Form) -> Difference | None:
    """What torch's matcher says of a candidate whose structure is right: an argument that the pattern does not name."""
    if said.startswith("undeclared_kwarg"):
        named = next((n for n in form.ops if f"node={n}," in said), node.name)
        op = form[named]
        return Difference("keyword", named, f"no {', '.join(op.kwargs)}", op.call(), op.where)
    return Difference("check", node.name, "a match", f"torch's matcher says {said[:160]}", form[node.name].where)


def _crosses_a_write(graph: fx.Graph, nodes: list[fx.Node]) -> Difference | None:
    """torch matches nothing across an op that writes: the nodes must lie in one region between writes."""
    if not seam.has("compute_mutation_regions") or not seam.has("mutation_region"):
        return None
    seam.compute_mutation_regions(graph)
    regions = {node: seam.mutation_region(graph, node) for node in nodes}
    if len({*regions.values()}) == 1:
        return None
    ordered = sorted(nodes)
    first = next(node for node in ordered if regions[node] != regions[ordered[0]])
    expected, found = "all of it between two writes", f"a write between {ordered[0].name} and {first.name}"
    return Difference("write", first.name, expected, found)


def _by_its_check(entry: Any, pattern: Pattern, match: Any, node: fx.Node, form: Form) -> Difference | None:
    tried: list[tuple[Any, Any]] = []

    def around(proceed: Callable[..., Any], expression: Any, candidate: Any) -> Any:
        result = proceed(expression, candidate)
        tried.append((expression, result))
        return result

    keys = [key for key in ("match_pattern", "match_outputs") if seam.has(key)]
    try:
        with seam.subscribe(**dict.fromkeys(keys, around)):
            accepted = bool(entry.extra_check(match))
    except Exception as error:
        said = f"it raised {first_line(error)}"
        return Difference("check", node.name, "an extra_check that accepts it", said, form[node.name].where)
    if accepted:
        return None
    for expression, result in tried:
        if not result:
            exact = pattern_of(expression, pattern.name)
            walk = Walk(exact, form).begin(exact.outputs[0], form[node.name]).result()
            if walk.first is not None:
                return walk.first
            return _of_text(str(result), node, form)
    return Difference("check", node.name, "an extra_check that accepts it", "it refused", form[node.name].where)

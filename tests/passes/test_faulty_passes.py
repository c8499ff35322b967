"""A pass that raises, runs on, breaks the graph, drops a write or forgets metadata: one finding each, and the run goes on."""

from __future__ import annotations

import pytest
import torch
from torch import fx

from conformance import Contract, Micrograph, Tensor

aten = torch.ops.aten


class Written(Micrograph):
    """Writes into its input."""

    inputs = (Tensor("4 8"),)
    contract = Contract()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x) * 2
        x.add_(1)
        return y


def raises(graph: fx.Graph) -> None:
    raise ValueError("no such kernel")


def runs_on(graph: fx.Graph) -> None:
    while True:
        try:
            pass
        except Exception:
            continue


def breaks_the_graph(graph: fx.Graph) -> None:
    node = graph.find_nodes(op="call_function", target=aten.relu.default)[0]
    node.args = (next(iter(node.users)),)


def drops_a_write(graph: fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.copy_.default):
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)


def replaced(graph: fx.Graph, meta: bool) -> fx.Node | None:
    """relu by an op that does the same; None where there is no relu (any more)."""
    node = next(iter(graph.find_nodes(op="call_function", target=aten.relu.default)), None)
    if node is None:
        return None
    with graph.inserting_before(node):
        fresh = graph.call_function(aten.clamp_min.default, (node.args[0], 0))
    if meta:
        fresh.meta = dict(node.meta)
    node.replace_all_uses_with(fresh)
    graph.erase_node(node)
    return fresh


def forgets_metadata(graph: fx.Graph) -> None:
    replaced(graph, meta=False)


def wrong_dtype(graph: fx.Graph) -> None:
    if (fresh := replaced(graph, meta=True)) is not None:
        fresh.meta["val"] = fresh.meta["val"].to(torch.float64)


def computes_something_else(graph: fx.Graph) -> None:
    if (fresh := replaced(graph, meta=True)) is not None:
        fresh.args = (fresh.args[0], 1)


def right(graph: fx.Graph) -> None:
    replaced(graph, meta=True)


EXPECTED = {
    raises: ("raised", "ValueError: no such kernel"),
    runs_on: ("timeout", "still running after 1 s"),
    breaks_the_graph: ("broken_graph", "which is computed later or was erased"),
    drops_a_write: ("lost_write", "the write into arg0_1 is gone"),
    forgets_metadata: ("metadata_loss", "aten.clamp_min.default has no `val`"),
    wrong_dtype: ("wrong_metadata", "says dtype float64, its op makes float32"),
    computes_something_else: ("wrong_result", "output 0"),
}


@pytest.mark.own_process
def test_each_fault_is_one_finding_and_the_next_pass_runs() -> None:
    from conformance.passes.examination import Depth, examine
    from conformance.passes.subject import subject_of

    depth = Depth(variants=False, neighbours=False, cost=False, limit=1.0)
    for faulty, (kind, said) in EXPECTED.items():
        found = [f for f in examine(subject_of(faulty), Written, depth=depth).findings if f.serious]
        assert [f.kind for f in found] == [kind], f"{faulty.__name__}: {[str(f) for f in found]}"
        assert said in found[0].detail
    made = examine(subject_of(right), Written, depth=Depth(variants=False, neighbours=False, cost=False))
    assert made.serious() == [] and made.matches == {"aten.clamp_min.default": 1}
    assert any(line.startswith("+") and "clamp_min" in line for line in made.diff())


@pytest.mark.own_process
def test_a_pass_that_matches_its_own_result_is_not_idempotent() -> None:
    from conformance.passes.examination import Depth, examine
    from conformance.passes.subject import subject_of

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    def twice(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 0.0

    subject = subject_of((doubled, twice, [torch.empty(4, 8)]))
    made = examine(subject, Written, depth=Depth(variants=False, neighbours=False, cost=False))
    assert made.matches == {"doubled": 1}
    assert [f.kind for f in made.serious()] == ["not_idempotent"]

"""What a compile leaves behind for triage: the captured graph, what it was called with, the graphs around a stage, and the
culprit inside it. A backend that leaves one says so (`backends.base.HasTrail`); others are triaged as far as their stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

from conformance.backends.base import Case, HasTrail, Triaged
from conformance.stage import Stage
from conformance.target import CPU, Target
from conformance.torch_seam import pytree
from conformance.triage.culprit import Culprit
from conformance.triage.open_examination import Held

NUMERIC = {
    "wrong_result",
    "numeric_drift",
    "lost_mutation",
    "wrong_metadata",
    "metadata_loss",
    "overfused",
    "undecomposed",
}


class Trail:
    """`compiled` is the failing compile, held open; or, where that went on to other things, once more with everything kept."""

    probe: Callable[..., Any] | None = None  # runs a graph through the compiler as cheaply as can be

    def __init__(self, backend: Any, case: Case, held: Held | None = None) -> None:
        self.backend, self.case = backend, case
        self.compiled = backend.compile(case) if held is None else held.compiled

    def close(self) -> None:
        self.compiled.close()

    def captured(self) -> list[fx.GraphModule]:
        raise NotImplementedError

    def inputs(self) -> tuple[Any, ...] | None:
        """What the captured graph is called with."""
        return tuple(pytree.tree_leaves(self.case.inputs(0)))

    def culprit(self, stage: Stage, kind: str) -> Culprit | None:
        return None

    def texts(self, stage: Stage) -> tuple[str, str]:
        """The graph that entered the stage, and what left it."""
        return "", ""


def holds_open(backend: Any, target: Target) -> bool:
    """Can compiles of this backend be held at its rungs, and kept open while their graphs run? Those of a variant are
    called in another way, and only code for the CPU runs wherever triage does."""
    return backend.variant_of is None and isinstance(backend, Triaged) and target == CPU


def flat(gm: fx.GraphModule) -> fx.GraphModule:
    """An exported graph that takes and returns plain tensors, without its checks of sizes."""
    for node in gm.graph.find_nodes(op="call_module", target="_guards_fn"):
        gm.graph.erase_node(node)
    gm.graph.set_codegen(fx.graph.CodeGen())
    gm.recompile()
    return gm


def follow(backend: Any, case: Case, held: Held | None = None) -> Trail | None:
    """The trail of a compile that is held open, or of a new one; None where the backend leaves none."""
    return backend.trail(case, held) if isinstance(backend, HasTrail) else None

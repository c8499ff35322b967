"""The capture, decomposition or pre-grad pass at fault: graphs that the trace holds, run on the inputs of the failing call."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.overrides import TorchFunctionMode

from conformance import graphs, oracle
from conformance.backends.inductor.decompositions import decomposable
from conformance.backends.inductor.seam import seam
from conformance.backends.inductor.triage.evidence import Evidence
from conformance.torch_seam import TorchDispatchMode
from conformance.triage.culprit import Culprit
from conformance.triage.graph_comparison import changed, ops_gone, placeholders, run, wrong_decompositions

# -------------------------------------------------------------------------------------------- capture


class _Calls(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func))
        if name not in ("__get__", "__set__", "size", "dim", "stride", "__len__"):
            self.names.append(name.strip("_"))
        return func(*args, **(kwargs or {}))


def of_capture(module: Any, inputs: tuple[Any, ...], captured: list[fx.GraphModule]) -> Culprit | None:
    """The first call of the program that the captured graph does not have in its place."""
    with _Calls() as calls:
        module(*inputs)
    have = [
        (n.target if isinstance(n.target, str) else getattr(n.target, "__name__", str(n.target))).strip("_")
        for gm in captured
        for n in gm.graph.nodes
        if n.op in ("call_function", "call_method")
    ]
    lost = [name for name in dict.fromkeys(calls.names) if calls.names.count(name) > have.count(name)]
    extra = [name for name in dict.fromkeys(have) if have.count(name) > calls.names.count(name)]
    if not lost and not extra:
        return Culprit(
            "capture", "outputs", "every call was captured; what the graph returns, or in which order, is wrong"
        )
    shown = f"the program calls {', '.join(lost[:4]) or 'nothing more'}; the graph has {', '.join(extra[:4]) or 'nothing'} instead"
    return Culprit("capture", (lost or extra)[0], shown, lost or extra)


# -------------------------------------------------------------------------------------- decomposition


def of_decomposition(module: Any, inputs: tuple[Any, ...], watch: Any) -> Culprit | None:
    """The decomposition, write or draw of random numbers that AOTAutograd got wrong."""
    if wrong := wrong_decompositions(module, inputs, seam.select_decompositions()):
        return wrong
    left = sorted({name for gm in watch.aot for name in decomposable(gm)})
    if left:
        return Culprit("decomposition", left[0], "it is missing: the op was left whole", left)
    eager, traced = _ops_of_eager(module, inputs), graphs.count_ops(watch.aot)
    written = [
        name for name in eager if name.split(".")[1].endswith("_") and name.split(".")[1] not in ("copy_", "set_")
    ]
    if written and not any(graphs.written_inputs(gm) for gm in watch.aot):
        return Culprit(
            "functionalization",
            written[0],
            "the program writes into its input, the traced graph does not write it back",
            written,
        )
    drawn = [name for name in dict.fromkeys(eager) if _draws(name)]
    if drawn:
        return Culprit(
            "tracing",
            drawn[0],
            "it draws random numbers; what is drawn, or what becomes of it, is not what eager makes",
            drawn,
        )
    return Culprit(
        "tracing", "aot_autograd", f"the decompositions are right; the traced graph calls {', '.join(list(traced)[:6])}"
    )


class _Ops(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def _ops_of_eager(module: Any, inputs: tuple[Any, ...]) -> list[str]:
    with _Ops() as mode, torch.no_grad():
        oracle.run(module, oracle.clone_inputs(inputs), module)
    return mode.names


def _draws(name: str) -> bool:
    try:
        packet, overload = name.split(".")[1:3]
        return torch.Tag.nondeterministic_seeded in getattr(getattr(torch.ops.aten, packet), overload).tags
    except (AttributeError, ValueError):
        return False


def of_pre_grad(evidence: Evidence, captured: fx.GraphModule, inputs: tuple[Any, ...]) -> Culprit | None:
    """Did a pass change the captured graph before it was traced?"""
    want = run(captured, list(inputs))
    for gm in evidence.traced:
        if placeholders(gm) == placeholders(captured) and (why := changed(gm, captured, list(inputs), want)):
            return Culprit("pass", "pre_grad_passes", f"before the graph is traced, {why}", ops_gone(captured, gm))
    return None

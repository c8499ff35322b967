"""How far a program is compiled before it is run: decomposed and run in Python, or compiled to the end.

A rung makes of a wide program what a caller would call, and says afterwards how each call was compiled: which operators are left of it,
and which calls of a library."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import fx

from conformance.backends.inductor.seam import seam as inductor
from conformance.backends.inductor.watch import Watch, poisoned, watching
from conformance.errors import first_line
from conformance.ops.call import Call, program
from conformance.ops.seam import seam
from conformance.stage import Stage
from conformance.torch_seam import OpOverload

# Kernels of a library, called because they are better than what would be generated.
LIBRARY = frozenset(
    "mm bmm addmm baddbmm addmv mv dot vdot addbmm convolution _int_mm _scaled_mm mkldnn onednn sdpa attention mkl".split()
)


@dataclass
class Compile:
    """One compile of a wide program. `ops[i]` counts the operators that the graph has for call `i`; `externs[i]` those that the program
    leaves to a library or to ATen. `kernels` says whether code was generated for the call. `unbuilt[i]`: operators that the compiler
    has a converter for, and left to torch all the same."""

    function: Callable[..., Any]
    ops: list[Counter[str]] = field(default_factory=list)
    externs: list[list[str]] = field(default_factory=list)
    kernels: list[bool] = field(default_factory=list)
    unbuilt: list[list[str]] = field(default_factory=list)
    inputs: list[int] = field(
        default_factory=list
    )  # which tensors of the program the captured graph takes: it drops unused ones


class Refusal(Exception):
    """A compile that ended in an exception, from a compiler that knows more of it: the stage that raised it, whether the compiler says
    that it does not take such programs, and which operators it has a converter for."""

    def __init__(self, error: BaseException, stage: Stage, by_design: bool, unbuilt: Sequence[str]) -> None:
        super().__init__(first_line(error))
        self.error, self.stage, self.by_design, self.unbuilt = error, stage, by_design, tuple(unbuilt)


class Rung(Protocol):
    """stage          where its findings stand
    width          how many calls one compile takes
    exported       whether torch.export captures the program: no graph break takes the place of what it refuses
    keeps_layouts  whether results have eager's strides, and share memory as eager's do
    """

    stage: Stage
    width: int
    exported: bool
    keeps_layouts: bool

    def compile(self, calls: Sequence[Call], whole: bool = True) -> AbstractContextManager[Compile]:
        """The calls as one program. whole: a graph break is an error; otherwise the rest runs in eager."""


class Decomposed:
    """AOTAutograd with Inductor's decompositions; the graph that comes out runs in Python, an operator at a time."""

    stage, width, exported, keeps_layouts = Stage.DECOMPOSITION, 48, False, True

    @contextmanager
    def compile(self, calls: Sequence[Call], whole: bool = True) -> Iterator[Compile]:
        made = Compile(lambda: None)

        def keep(gm: fx.GraphModule, _: Any) -> Any:
            if not made.ops and whole:
                made.ops = ops_by_call(gm, calls, made.inputs)
            return seam.boxed(gm)

        aot = seam.aot_autograd(
            fw_compiler=keep,
            bw_compiler=lambda gm, _: seam.boxed(gm),
            decompositions=inductor.select_decompositions,
            partition_fn=seam.partition,
        )

        def backend(gm: fx.GraphModule, inputs: Any) -> Any:
            made.inputs = taken(gm)
            return aot(gm, inputs)

        with fresh():
            made.function = torch.compile(program(calls).function, backend=backend, fullgraph=whole)
            yield made


class Compiled:
    """Inductor's whole program for the CPU."""

    stage, width, exported, keeps_layouts = Stage.RUNTIME, 32, False, True

    @contextmanager
    def compile(self, calls: Sequence[Call], whole: bool = True) -> Iterator[Compile]:
        made = Compile(lambda: None)
        hooks = hooks_into(made, calls, whole)
        with fresh(), poisoned(), inductor.subscribe(**hooks):
            made.function = torch.compile(program(calls).function, fullgraph=whole)
            yield made

    def stage_at_fault(self, is_wrong: Callable[[Compile], bool], call: Call) -> str:
        """The first stage whose graph, run in place of the program, is wrong as well; code generation where none is."""
        watch = Watch()
        with fresh(), watching(watch):
            made = Compile(torch.compile(program([call]).function))
            for rung, stage in HELD.items():
                watch.rung = rung
                if is_wrong(made):
                    return stage.value
        return Stage.CODEGEN.value


def hooks_into(made: Compile, calls: Sequence[Call], whole: bool) -> dict[str, Callable[..., Any]]:
    """What Inductor is listened to for: which tensors a graph takes, which operators it has and what is left to a library, all written
    into `made`."""

    def captured(proceed: Callable[..., Any], gm: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(gm, fx.GraphModule) and not made.inputs:
            made.inputs = taken(gm)
        return proceed(gm, *args, **kwargs)

    def lowered(proceed: Callable[..., Any], gm: Any, *args: Any, **kwargs: Any) -> Any:
        if whole and not made.ops and not kwargs.get("is_backward"):
            made.ops = ops_by_call(gm, calls, made.inputs)
        return proceed(gm, *args, **kwargs)

    def schedule(proceed: Callable[..., Any], scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        if whole and not made.externs:
            made.externs, made.kernels = externs_by_call(scheduler, calls, made.inputs)
        return proceed(scheduler, *args, **kwargs)

    return {"compile_fx": captured, "codegen_and_compile": lowered, "schedule": schedule}


HELD = {"captured": Stage.CAPTURE, "decomposed": Stage.DECOMPOSITION, "postgrad": Stage.POSTGRAD}


@contextmanager
def fresh() -> Iterator[None]:
    """Nothing is left of an earlier compile, in memory or on disk, and nothing is left behind."""
    inductor.reset()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-ops-"))
        stack.enter_context(environment_set("TORCHINDUCTOR_CACHE_DIR", folder))
        stack.enter_context(inductor.config.patch(force_disable_caches=True))
        if hasattr(inductor.dynamo_config, "automatic_dynamic_local_pgo"):
            stack.enter_context(inductor.dynamo_config.patch(automatic_dynamic_local_pgo=False))
        yield


@contextmanager
def environment_set(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


# ------------------------------------------------------------------------------------- which node is whose


def taken(gm: fx.GraphModule) -> list[int]:
    """Which tensors of a wide program (`t0`, `t1`, …) a captured graph takes, in its order."""
    names = [re.search(r"t(\d+)_?$", node.name) for node in gm.graph.nodes if node.op == "placeholder"]
    return [int(name.group(1)) for name in names if name]


def owners(gm: fx.GraphModule, calls: Sequence[Call], inputs: Sequence[int]) -> dict[str, int]:
    """Node → the call that it belongs to. The tensors of two calls are never the same, so that a node belongs to the call whose tensors
    it is computed from; a node that is computed from none (a constant) belongs to the call that uses it. Empty where the graph has
    other inputs than the captured one: a seed, a size."""
    whose = [at for at, call in enumerate(calls) for _ in call.tensors]
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    if len(placeholders) != len(inputs):
        return {}
    found = {node.name: whose[index] for node, index in zip(placeholders, inputs, strict=True)}
    for node in gm.graph.nodes:
        if node.op != "output" and node.name not in found:
            known = next((found[parent.name] for parent in node.all_input_nodes if parent.name in found), None)
            if known is not None:
                found[node.name] = known
    for node in reversed(gm.graph.nodes):
        if node.op != "output" and node.name not in found:
            users = [found[user.name] for user in node.users if user.name in found]
            if users:
                found[node.name] = users[0]
    return found


def ops_by_call(gm: fx.GraphModule, calls: Sequence[Call], inputs: Sequence[int]) -> list[Counter[str]]:
    """How often each operator stands in the part of the graph that a call became."""
    found: list[Counter[str]] = [Counter() for _ in calls]
    belongs = owners(gm, calls, inputs)
    for node in gm.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, OpOverload) and node.name in belongs:
            found[belongs[node.name]][str(node.target)] += 1
    return found if belongs else []


def externs_by_call(scheduler: Any, calls: Sequence[Call], inputs: Sequence[int]) -> tuple[list[list[str]], list[bool]]:
    """What each call leaves to a library or to ATen, and whether a kernel was generated for it. Where it is not known whose a node is,
    it counts for all: they are calls of one operator."""
    externs: list[list[str]] = [[] for _ in calls]
    kernels = [False for _ in calls]
    gm = inductor.virtualized.graph.module
    belongs = owners(gm, calls, inputs) if isinstance(gm, fx.GraphModule) else {}
    for group in scheduler.nodes:
        for part in group.get_nodes():
            ir = getattr(part, "node", None)
            mine = {belongs[one.name] for one in getattr(ir, "origins", ()) if one.name in belongs}
            for owner in mine if belongs else range(len(calls)):
                if getattr(part, "is_extern", bool)():
                    name = getattr(ir, "python_kernel_name", None) or getattr(ir, "op_overload", None)
                    externs[owner] += [str(name)] if name else []
                else:
                    kernels[owner] = True
    return externs, kernels


def is_library(extern: str) -> bool:
    """Is this a kernel of a library, rather than ATen's own operator?"""
    words = set(extern.replace("::", ".").replace("_out", "").split("."))
    return bool(words & LIBRARY) or any(
        word in extern for word in ("mkldnn", "onednn", "mkl", "convolution", "attention")
    )

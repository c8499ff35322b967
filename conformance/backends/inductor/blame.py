"""The stage in which an exception arose: the innermost frame that belongs to one."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from conformance import graphs, oracle
from conformance.backends.inductor.seam import DYNAMO_ERRORS
from conformance.errors import innermost_first
from conformance.stage import Stage
from conformance.torch_seam import pytree
from conformance.verdict import Kind

if TYPE_CHECKING:
    from conformance.backends.inductor.watch import Watch

# Parts of file names, most special first.
OWNERS: tuple[tuple[str, Stage], ...] = (
    ("torch/_dynamo/backends", Stage.DECOMPOSITION),
    ("torch/_dynamo/", Stage.CAPTURE),
    ("torch/_functorch/partitioners", Stage.DECOMPOSITION),
    ("runtime_wrappers.py", Stage.RUNTIME),
    ("torch/_functorch/", Stage.DECOMPOSITION),
    ("torch/_decomp/", Stage.DECOMPOSITION),
    ("torch/_inductor/decomposition.py", Stage.DECOMPOSITION),
    ("torch/_inductor/fx_passes/", Stage.POSTGRAD),
    ("torch/_inductor/pattern_matcher.py", Stage.POSTGRAD),
    ("torch/_inductor/scheduler.py", Stage.FUSION),
    ("torch/_inductor/lowering.py", Stage.FUSION),
    ("torch/_inductor/ir.py", Stage.FUSION),
    ("torch/_inductor/kernel/", Stage.FUSION),
    ("torch/_inductor/codegen/", Stage.CODEGEN),
    ("torch/_inductor/codecache.py", Stage.CODEGEN),
    ("torch/_inductor/async_compile.py", Stage.CODEGEN),
    ("torch/_inductor/cpp_builder.py", Stage.CODEGEN),
    ("torch/_inductor/graph.py", Stage.FUSION),
    ("torch/_inductor/output_code.py", Stage.RUNTIME),
    ("torch/_inductor/constant_folding.py", Stage.POSTGRAD),
    ("torch/_inductor/freezing", Stage.POSTGRAD),
    ("torch/_inductor/compile_fx", Stage.POSTGRAD),
)
# Dynamo's files whose frames stand around the work of others: fake tensors are dispatched through `eval_frame._fn` in every stage.
CALL_THROUGH = ("torch/_dynamo/eval_frame.py", "torch/_dynamo/external_utils.py", "torch/_dynamo/repro/")


def stage_of(error: BaseException) -> Stage:
    name = type(error).__name__
    if name in ("CppCompileError", "CUDACompileError"):
        return Stage.CODEGEN
    if type(error).__module__ == DYNAMO_ERRORS and name != "BackendCompilerFailed":
        return Stage.CAPTURE  # also where a decomposition told Dynamo what an op gives
    files: list[str] = []  # of all frames, innermost first
    for inner in innermost_first(error):
        if type(inner).__name__ in ("CppCompileError", "CompilationError", "PTXASError"):
            return Stage.CODEGEN
        frames = reversed(traceback.extract_tb(inner.__traceback__))
        files += [frame.filename.replace("\\", "/") for frame in frames]
    telling = [file for file in files if not any(part in file for part in CALL_THROUGH)]
    # Dynamo takes its own frames off an error that it gives to the caller: then only those around it are left.
    return _owner(telling) or _owner(files) or Stage.RUNTIME


def _owner(files: list[str]) -> Stage | None:
    return next((stage for file in files for part, stage in OWNERS if part in file), None)


# ------------------------------------------------------------------------------- what is around a program


def around(watch: Watch, wrong: list[oracle.Difference], ref: oracle.Reference) -> Stage:
    """The traced graph, run inside AOTAutograd's wrappers, differs from eager. Is it the graph? Or the wrappers, which know
    from the analysis what to write back and what to give as a view? Or, in training, a pass over the joint graph?"""
    if watch.emptied:  # there is no earlier form of a program that calls nothing
        return Stage.POSTGRAD
    kinds = {difference.kind for difference in wrong}
    analysis = "\n".join(watch.payloads("aot_forward_graph_fw_metadata"))
    if kinds == {Kind.LOST_ALIAS}:
        noticed = re.search(r"OutputType\.(alias_of|is_input)", analysis)
        return Stage.RUNTIME if noticed else Stage.POSTGRAD if _joint_shares(watch) else Stage.DECOMPOSITION
    if kinds == {Kind.LOST_MUTATION}:
        written = sum(graphs.written_inputs(gm) for gm in watch.aot) >= len({d.where for d in wrong})
        return Stage.RUNTIME if written and _graph_wrote_it(watch, wrong, ref) else _graph_or_pass(watch)
    if kinds == {Kind.WRONG_RESULT} and _graph_gave_it(watch.raw[: _results(watch)], wrong, ref):
        return Stage.RUNTIME
    return _graph_or_pass(watch)


def _results(watch: Watch) -> int | None:
    """How many of a forward graph's outputs are results: what it saves for the backward graph comes after them. None: all of them."""
    if len(watch.joint) != 1 or not watch.graphs or watch.graphs[0].role != "forward":
        return None
    nodes = watch.joint[0].graph.nodes
    gradients = sum(node.op == "placeholder" and node.name.startswith("primals_") for node in nodes)
    outputs = next(len(pytree.tree_leaves(node.args[0])) for node in nodes if node.op == "output")
    return max(outputs - gradients, 0)


def _graph_or_pass(watch: Watch) -> Stage:
    return Stage.POSTGRAD if _joint_differs(watch) else Stage.DECOMPOSITION


def _graph_gave_it(raw: list[Any], wrong: list[oracle.Difference], ref: oracle.Reference) -> bool:
    """Are eager's outputs, in their order, among what the graph itself gave? Of a Python value that a caller read from one of them (its
    device, a sum of its elements) the graph does not tell."""
    outputs = dict(enumerate(ref.eager.outputs))
    differing = [outputs.get(int(d.where.split()[1])) for d in wrong if d.where.startswith("output ")]
    if len(differing) < len(wrong) or not all(isinstance(want, torch.Tensor) for want in differing):
        return False
    place = 0
    for want in ref.eager.outputs:
        if not isinstance(want, torch.Tensor):
            continue
        found = [i for i in range(place, len(raw)) if _same(raw[i], want)]
        if not found:
            return False
        place = found[0] + 1
    return bool(raw)


def _graph_wrote_it(watch: Watch, wrong: list[oracle.Difference], ref: oracle.Reference) -> bool:
    """Is what eager left in its inputs and buffers what the graph left in its own, or gave to be written?"""
    wanted = [(ref.eager.inputs | ref.eager.state).get(difference.where) for difference in wrong]
    return all(want is not None and any(_same(value, want) for value in [*watch.left, *watch.raw]) for want in wanted)


def _same(got: Any, want: torch.Tensor) -> bool:
    if not isinstance(got, torch.Tensor) or got.shape != want.shape or got.dtype != want.dtype:
        return False
    return not list(oracle.value_differences("", got.detach(), want))


def _joint_differs(watch: Watch) -> bool:
    """Did the joint passes change what a graph computes? Of one that draws random numbers this cannot be said: they draw others."""
    if any(_draws(gm) for gm in watch.aot):
        return False
    return any(
        isinstance(want, torch.Tensor) and want.shape == got.shape and list(oracle.value_differences("", got, want))
        for before, after in _before_and_after_joint(watch)
        for want, got in zip(before.outputs, after.outputs, strict=False)
    )


def _draws(gm: torch.fx.GraphModule) -> bool:
    return any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in gm.graph.nodes)


def _joint_shares(watch: Watch) -> bool:
    """Do the joint passes give an input itself, or a view of it, where the traced graph computes a new tensor?"""
    return any(before.shared() != after.shared() for before, after in _before_and_after_joint(watch))


class _GraphRun(NamedTuple):
    inputs: list[Any]
    outputs: list[Any]

    def shared(self) -> list[bool]:
        """Of each output: is its memory an input's?"""
        storages = {_storage(value) for value in self.inputs} - {0}
        return [_storage(value) in storages for value in self.outputs]


def _storage(value: Any) -> int:
    return value.untyped_storage().data_ptr() if isinstance(value, torch.Tensor) else 0


def _before_and_after_joint(watch: Watch) -> Iterator[tuple[_GraphRun, _GraphRun]]:
    """Each graph before the joint passes and after them, run on the same values: those of the call, as far as they fit, since a pass may
    be right of all numbers and wrong of NaN; and made-up ones."""
    for before, after in zip(watch.aot, watch.joint, strict=False):
        values = [_made(node.meta.get("val")) for node in before.graph.nodes if node.op == "placeholder"]
        if all(_alike(made, given) for made, given in zip(values, watch.left, strict=False)):
            values[: len(watch.left)] = watch.left[: len(values)]
        if any(value is None for value in values):
            continue
        try:
            with torch.no_grad():
                runs = _flat_run(before, values), _flat_run(after, values)
        except Exception:  # made-up values that the graph does not take say nothing
            continue
        yield runs


def _alike(made: Any, given: Any) -> bool:
    if not isinstance(made, torch.Tensor) or not isinstance(given, torch.Tensor):
        return type(made) is type(given)
    return made.shape == given.shape and made.dtype == given.dtype


def _flat_run(gm: torch.fx.GraphModule, values: list[Any]) -> _GraphRun:
    """A joint graph takes two lists; its placeholders are flat all the same."""
    values = [v.clone() if isinstance(v, torch.Tensor) else v for v in values]
    oracle.seed()
    return _GraphRun(values, pytree.tree_leaves(torch.fx.Interpreter(gm).run(*values, enable_io_processing=False)))


def _made(val: Any) -> Any:
    """A value like the one that was traced."""
    if isinstance(val, torch.SymInt):
        return int(val.node.hint) if val.node.hint is not None else None
    if not isinstance(val, torch.Tensor):
        return val
    try:
        shape = [int(size) if isinstance(size, int) else int(size.node.hint) for size in val.shape]
    except (TypeError, AttributeError):
        return None
    generator = torch.Generator().manual_seed(oracle.SEED)
    if val.dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(val.dtype)
    return (
        torch.zeros(shape, dtype=val.dtype)
        if not val.dtype.is_complex
        else torch.randn(shape, dtype=val.dtype, generator=generator)
    )

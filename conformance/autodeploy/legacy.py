"""TensorRT-LLM's older passes, under `_torch/compilation`: plain Python over FX graphs.

They speak of compiled ops that an unbuilt checkout does not have. Such names are declared while a pass runs, without a
kernel, so that the pass can compare against them; nothing can call them, and they are gone afterwards.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from conformance.backends.autodeploy import graph
from conformance.backends.autodeploy.loader import Loaded, Missing
from conformance.backends.autodeploy.passes import NO_OP
from conformance.backends.autodeploy.seam import LEGACY_OPS, outside
from conformance.errors import UsageError, first_line, unknown

PASSES = {
    "fuse_norm": "patterns.residual_add_norm",
    "fix_functionalization": "remove_copy_pass",
    "recover_pass": "recover_pass",
    "multi_stream_schedule": "multi_stream.auto_multi_stream",
}


class Broken(UsageError):
    """A pass that is there, and that this torch or this checkout cannot run."""


@dataclass
class LegacyResult:
    name: str
    matches: int
    before: fx.GraphModule
    after: fx.GraphModule


class Legacy:
    """The older passes of one checkout."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded

    def has(self, name: str) -> bool:
        try:
            self._module(name)
        except Missing:
            return False
        return True

    def _module(self, name: str) -> Any:
        if name not in PASSES:
            raise unknown("legacy pass", name, PASSES)
        return self.loaded.legacy(PASSES[name])

    def run(self, name: str, gm: fx.GraphModule, **settings: Any) -> LegacyResult:
        """One pass over a copy of the graph, which must already be in the older form (`legacy_form`)."""
        module = self._module(name)
        apply: dict[str, Callable[[fx.GraphModule], int]] = {
            "fuse_norm": lambda g: self._fuse_norm(module, g),
            "fix_functionalization": lambda g: self._remove_copies(module, g),
            "recover_pass": lambda g: _changed(g, lambda: module.recover_pass(g)),
            "multi_stream_schedule": lambda g: module.multi_stream_schedule(g, settings.get("streams", 2)),
        }
        with self.loaded.active(), declared() as declare:
            while True:
                after = graph.copied(gm)
                try:
                    matches = apply[name](after)
                    break
                except AttributeError as error:
                    declare(error)  # then once more, from the start
                except Exception as error:
                    where = f"the legacy pass {name} does not run with torch {torch.__version__}"
                    raise Broken(f"{where}: {first_line(error)}") from error
            after.recompile()
        return LegacyResult(name, int(matches or 0), gm, after)

    def _fuse_norm(self, module: Any, gm: fx.GraphModule) -> int:
        patterns = outside.pattern_pass()
        module.register_add_norm(patterns)
        count = patterns.apply(gm.graph)
        outside.sort_graph(gm.graph)
        return int(count)

    def _remove_copies(self, module: Any, gm: fx.GraphModule) -> int:
        before = len(functionalized(gm))
        module.remove_copy_for_mutates_args(gm.graph)
        gm.graph.lint()
        return before - len(functionalized(gm))

    def legacy_form(self, gm: fx.GraphModule) -> fx.GraphModule:
        """AutoDeploy's norm op as the older passes know it: `trtllm::flashinfer_rmsnorm`."""
        with self.loaded.active():
            self._ops()
            twin = graph.copied(gm)
            for node in list(twin.graph.nodes):
                if graph.packet_name(node.target) in ("auto_deploy.torch_rmsnorm", "auto_deploy.flashinfer_rms_norm"):
                    node.target = torch.ops.trtllm.flashinfer_rmsnorm.default
            twin.recompile()
        return twin

    def functionalized_form(self, gm: fx.GraphModule) -> fx.GraphModule:
        """Add and norm as functionalization leaves the fused in-place op: `auto_functionalized` around it."""
        twin = graph.copied(gm)
        for norm in list(twin.graph.nodes):
            total: Any = norm.args[0] if norm.args else None
            if (
                graph.packet_name(norm.target) != "trtllm.flashinfer_rmsnorm"
                or graph.packet_name(total.target) != "aten.add"
            ):
                continue
            with twin.graph.inserting_before(norm):
                given = {"input": total.args[1], "residual": total.args[0], "weight": norm.args[1], "eps": norm.args[2]}
                fused = torch.ops.trtllm.flashinfer_fused_add_rmsnorm.default
                call = twin.graph.call_function(outside.auto_functionalized, (fused,), given)
                for index, old in ((1, norm), (2, total)):
                    new = twin.graph.call_function(operator.getitem, (call, index))
                    new.meta.update(old.meta)
                    old.replace_all_uses_with(new)
                call.meta["val"] = (None, norm.meta.get("val"), total.meta.get("val"))
            twin.graph.erase_node(norm)
            twin.graph.erase_node(total)
        twin.graph.lint()
        twin.recompile()
        return twin

    def _ops(self) -> None:
        """Registers the flashinfer ops of the older path, as TensorRT-LLM does."""
        import importlib

        try:
            importlib.import_module(LEGACY_OPS)
        except ImportError as error:
            raise Missing(f"{self.loaded.found} has no {LEGACY_OPS}: {first_line(error)}") from None


@contextmanager
def declared() -> Iterator[Callable[[AttributeError], None]]:
    """Gives a function that declares the op whose absence an error complains of."""
    libraries: dict[str, Any] = {}
    names: set[str] = set()

    def declare(error: AttributeError) -> None:
        missing = NO_OP.search(str(error))
        if not missing or missing[0] in names:
            raise error
        space, name = missing[1], missing[2]
        names.add(missing[0])
        if space not in libraries:
            libraries[space] = torch.library.Library(space, "FRAGMENT")
        libraries[space].define(f"{name}(Tensor x) -> Tensor")

    try:
        yield declare
    finally:
        for library in libraries.values():
            outside.close_library(library)


def functionalized(gm: fx.GraphModule) -> list[fx.Node]:
    """Calls of ops that write into their arguments, wrapped so that they do not."""
    return [node for node in gm.graph.nodes if node.op == "call_function" and "auto_functionalized" in str(node.target)]


def _changed(gm: fx.GraphModule, apply: Callable[[], Any]) -> int:
    before = len(gm.graph.nodes)
    apply()
    return int(len(gm.graph.nodes) != before)

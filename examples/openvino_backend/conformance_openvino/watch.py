"""What one compile by OpenVINO leaves behind: graphs, partitions, models. Filled by what the seam reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from conformance import graphs
from conformance.errors import CannotRun, first_line
from conformance.stage import Stage
from conformance_openvino.seam import seam

Proceed = Callable[..., Any]


@dataclass
class Partition:
    """A part of a graph that OpenVINO claimed. `error`: why torch computes it after all."""

    gm: fx.GraphModule
    model: Any = None  # ov.Model, converted from the graph
    compiled: Any = None  # ov.CompiledModel
    calls: int = 0
    error: str = ""

    def __call__(self, *args: Any) -> Any:
        """Run the compiled model in the plain way: nothing is shared with inputs, outputs or other calls."""
        if self.compiled is None:
            raise CannotRun("the partition was not compiled")
        try:
            found = self.compiled([x if isinstance(x, int) else x.detach().numpy().copy() for x in args])
        except Exception as error:  # made for other sizes
            raise CannotRun(first_line(error)) from None
        outputs = [torch.from_numpy(found[out].copy()) for out in self.compiled.outputs]
        return outputs[0] if len(outputs) == 1 else outputs


@dataclass
class Graph:
    """One graph that Dynamo captured, and its forms. `error`: why Inductor compiled it instead of OpenVINO."""

    captured: fx.GraphModule
    decomposed: fx.GraphModule | None = None
    partitioned: fx.GraphModule | None = None
    error: str = ""

    def submodules(self) -> dict[str, fx.GraphModule]:
        children = self.partitioned.named_children() if self.partitioned is not None else ()
        return {name: child for name, child in children if isinstance(child, fx.GraphModule) and "fused_" in name}


class WithModels(fx.Interpreter):
    """Runs a partitioned graph with the compiled models of its partitions."""

    def __init__(self, graph: Graph, partitions: dict[int, Partition]) -> None:
        assert graph.partitioned is not None
        super().__init__(graph.partitioned)
        self.mine = {
            name: partitions[id(child)] for name, child in graph.submodules().items() if id(child) in partitions
        }

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        partition = self.mine.get(str(target))
        return super().call_module(target, args, kwargs) if partition is None or partition.error else partition(*args)


@dataclass
class Watch:
    """`rung`: the form of the program that is run; None is the program itself."""

    rung: Stage | None = None
    reached: Stage = Stage.CAPTURE
    graphs: list[Graph] = field(default_factory=list)
    partitions: dict[int, Partition] = field(default_factory=dict)  # by the identity of their graph
    models_read: int = 0
    models_compiled: int = 0
    progress: Callable[[Stage], None] = lambda stage: None
    _running: Partition | None = None

    def _come_to(self, stage: Stage) -> None:
        self.reached = stage
        self.progress(stage)

    # --------------------------------------------------------------------------------- what the seam reports

    def compile_graph(
        self, proceed: Proceed, subgraph: fx.GraphModule, example_inputs: Any, options: Any = None
    ) -> Proceed:
        self._come_to(Stage.DECOMPOSITION)
        made = Graph(graphs.copied(subgraph))
        self.graphs.append(made)
        program = proceed(subgraph, example_inputs, options)

        def call(*args: Any) -> Any:
            return program(*args) if self.rung is None else self._form(made, self.rung)(*args)

        return call

    def _form(self, made: Graph, rung: Stage) -> Callable[..., Any]:
        if rung is Stage.CAPTURE:
            return made.captured
        form = made.decomposed if rung is Stage.DECOMPOSITION else made.partitioned
        if form is None:
            raise CannotRun("OpenVINO made no such form of the graph")
        return WithModels(made, self.partitions).run if rung is Stage.CODEGEN else form

    def partition(self, proceed: Proceed, partitioner: Any, gm: fx.GraphModule, options: Any) -> fx.GraphModule:
        self._come_to(Stage.FUSION)
        self.graphs[-1].decomposed = graphs.copied(gm)
        found: fx.GraphModule = proceed(partitioner, gm, options)
        self.graphs[-1].partitioned = graphs.copied(found)
        return found

    def inductor(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        error = sys.exception()
        self.graphs[-1].error = first_line(error) if error is not None else "no reason given"
        return proceed(*args, **kwargs)

    def execute(self, proceed: Proceed, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        """A partition is run. For sizes that it has not seen, OpenVINO wraps its own wrapper once more; what is not a graph is that."""
        if not isinstance(gm, fx.GraphModule):
            return proceed(gm, *args, **kwargs)
        mine = self._running = self.partitions.setdefault(id(gm), Partition(gm))
        try:
            found = proceed(gm, *args, **kwargs)
        except Exception as error:
            mine.error = first_line(error)
            raise
        finally:
            self._running = None
        mine.calls += 1
        return found

    def compile_model(self, proceed: Proceed, core: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        self._come_to(Stage.CODEGEN)
        compiled = proceed(core, model, *args, **kwargs)
        self.models_compiled += 1
        if self._running is not None:
            self._running.model, self._running.compiled = model, compiled
        self._come_to(Stage.RUNTIME)
        return compiled

    def read_model(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        self.models_read += 1
        return proceed(*args, **kwargs)


HOOKS = ("compile_graph", "partition", "inductor", "execute", "compile_model", "read_model")


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    with seam.subscribe(**{key: getattr(watch, key) for key in HOOKS if seam.has(key)}):
        yield


def forget() -> None:
    """Dynamo and OpenVINO keep what they compiled in this process; from now on they do not."""
    torch._dynamo.reset()
    seam.clear_caches()
    seam.request_cache.clear()

"""Watches one `torch_tensorrt.dynamo.compile`: wraps its steps for the time of the call, and takes them off again."""

from __future__ import annotations

import copy
import functools
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import fx, nn

from conformance.backends.torch_tensorrt.api import Library
from conformance.backends.torch_tensorrt.compile_log import (
    Engine,
    Layer,
    PassRun,
    Recording,
    final_writes,
    op_name,
    shown,
    snapshot,
)
from conformance.backends.torch_tensorrt.description import described
from conformance.backends.torch_tensorrt.engine import PlanModule, PlanRuntime
from conformance.errors import first_line
from conformance.stage import Stage
from conformance.target import Target

BUILT = "Engine Layer Information"


class Recorder:
    def __init__(self, library: Library, target: Target, recording: Recording, module: nn.Module | None = None) -> None:
        self.library = library
        self.target = target
        self.recording = recording
        self.buffers = dict(module.named_buffers()) if module is not None else {}
        self.saved = {name: tensor.detach().clone() for name, tensor in self.buffers.items()}
        self.engine: Engine | None = None
        self.copies = True
        self._entered = time.perf_counter()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Only the engines and what was warned of: copying graphs is not safe inside the fake mode of `torch.compile`."""
        self.copies = False
        with ExitStack() as stack:
            self._wrap(stack, self.library.compiler, "convert_module", self._convert)
            self._wrap(stack, self.library.conversion, "interpret_module_to_result", self._interpret)
            stack.enter_context(self._logs())
            if self.target.headless:
                stack.enter_context(self._headless())
            yield

    @contextmanager
    def watching(self) -> Iterator[None]:
        with ExitStack() as stack:
            wrap = functools.partial(self._wrap, stack)
            compiler = self.library.compiler
            wrap(compiler, "pre_export_lowering", self._pre_export_lowering)
            if self.library.lifts_buffers:
                wrap(compiler, "lift_mutated_buffers", self._lift)
            wrap(compiler, "post_lowering", self._post_lowering)
            wrap(compiler, "compile_module", self._compile_module)
            for name in ("fast_partition", "global_partition"):
                wrap(self.library.partitioning, name, functools.partial(self._partition, name))
            wrap(compiler, "convert_module", self._convert)
            wrap(self.library.conversion, "interpret_module_to_result", self._interpret)
            wrap(self.library.interpreter, "run_node", self._run_node)
            wrap(self.library.interpreter, "_populate_trt_builder_config", self._configure)
            stack.enter_context(self._logs())
            if self.target.headless:
                stack.enter_context(self._headless())
            self._entered = time.perf_counter()
            try:
                yield
            finally:
                self.reach(self.recording.reached)

    def _wrap(self, stack: ExitStack, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
        real = getattr(owner, name)
        stack.enter_context(mock.patch.object(owner, name, _around(real, wrapper)))

    def _headless(self) -> ExitStack:
        """Questions about the device are answered from its description; tensors stay on the CPU; engines are taken, not loaded."""
        assert self.target.device is not None
        stack = ExitStack()
        stack.enter_context(described(self.target.device))
        for module in [module for name, module in sys.modules.items() if name.startswith("torch_tensorrt.")]:
            if "to_torch_device" in vars(module):
                stack.enter_context(mock.patch.object(module, "to_torch_device", lambda _: torch.device("cpu")))
        stack.enter_context(mock.patch.object(self.library.trt, "Runtime", PlanRuntime, create=True))
        return stack

    # ------------------------------------------------------------------------------------------ stages

    def reach(self, stage: Stage) -> None:
        """Time up to now belongs to the stage before."""
        now = time.perf_counter()
        seconds = self.recording.seconds
        seconds[self.recording.reached] = seconds.get(self.recording.reached, 0.0) + now - self._entered
        self._entered = now
        self.recording.reached = stage

    def _pre_export_lowering(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.reach(Stage.DECOMPOSITION)
        with self._passes(self.library.pre_passes, self.recording.pre_passes):
            return real(*args, **kwargs)

    def _lift(self, real: Callable[..., Any], gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        self._keep_decomposed(gm)
        lifted, buffers = real(gm, *args, **kwargs)
        record = self.recording
        record.lifted = snapshot(lifted)
        record.lifted_buffers = {placeholder: buffer for placeholder, buffer, _ in buffers}
        record.predicted = list(lifted.meta.get("_predicted_kv_bindings", ()))
        record.copied_back = list(lifted.meta.get("_copyback_mutation_buffers", ()))
        return lifted, buffers

    def _keep_decomposed(self, gm: fx.GraphModule) -> None:
        if self.recording.decomposed is None:
            self.recording.decomposed = snapshot(gm)
            self.recording.buffer_writes = final_writes(gm)

    def _post_lowering(self, real: Callable[..., Any], gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        self._keep_decomposed(gm)
        self.reach(Stage.POSTGRAD)
        with self._passes(self.library.post_passes, self.recording.passes):
            lowered = real(gm, *args, **kwargs)
        self.recording.lowered = snapshot(lowered)
        return lowered

    @contextmanager
    def _passes(self, manager: Any, runs: list[PassRun]) -> Iterator[None]:
        with mock.patch.object(manager, "passes", [self._watched_pass(p, runs) for p in manager.passes]):
            yield

    def _watched_pass(self, lowering_pass: Callable[..., Any], runs: list[PassRun]) -> Callable[..., Any]:
        @functools.wraps(lowering_pass)
        def watched(gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            before, writes = shown(gm), final_writes(gm)
            result = lowering_pass(gm, *args, **kwargs)
            after = shown(result)
            run = PassRun(getattr(lowering_pass, "__name__", "pass"), before, after)
            run.dropped_writes = sorted(set(writes) - set(final_writes(result)))
            if run.changed:
                run.graph = snapshot(result)
            self._keep_state(run)
            runs.append(run)
            return result

        return watched

    def _keep_state(self, run: PassRun) -> None:
        """A pass that runs parts of the graph may run writes too: compiling must leave the user's buffers alone."""
        for name, tensor in self.buffers.items():
            if not torch.equal(torch.nan_to_num(tensor), torch.nan_to_num(self.saved[name])):
                run.disturbed.append(name)
                with torch.no_grad():
                    tensor.copy_(self.saved[name])

    def _compile_module(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.reach(Stage.FUSION)
        return real(*args, **kwargs)

    def _partition(self, name: str, real: Callable[..., Any], gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        record = self.recording
        if not record.partitioners:
            other = {"fast_partition": "global_partition", "global_partition": "fast_partition"}[name]
            record.partitioners[other] = self._probe(other, gm, args, kwargs)
        partitioned, support = real(gm, *args, **kwargs)
        record.partitioner = name
        record.partitioned = snapshot(partitioned)
        record.partitioners[name] = _engines_in(partitioned)
        record.unsupported = dict(getattr(support, "unsupported_operators", {}))
        return partitioned, support

    def _probe(self, name: str, gm: fx.GraphModule, args: Any, kwargs: dict[str, Any]) -> Any:
        """What the partitioner that was not asked for would have done with the same graph."""
        kwargs = {k: v for k, v in kwargs.items() if k != "skip_fusion"}
        try:
            return _engines_in(getattr(self.library.partitioning, name).__wrapped__(snapshot(gm), *args, **kwargs)[0])
        except Exception as error:
            return first_line(error, 120)

    # ----------------------------------------------------------------------------------------- engines

    def _convert(self, real: Callable[..., Any], module: fx.GraphModule, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        self.reach(Stage.CODEGEN)
        name = str(kwargs.get("name", f"engine_{len(self.recording.engines)}"))
        self.engine = engine = Engine(name, snapshot(module) if self.copies else module)
        settings = args[0] if args else kwargs["settings"]
        engine.specs, engine.settings = inputs, copy.copy(settings)
        self.recording.engines.append(engine)
        if not self.target.headless:
            return real(module, inputs, *args, **kwargs)
        result = self.library.conversion.interpret_module_to_result(module, inputs, settings, engine_cache=kwargs.get("engine_cache"))
        return PlanModule(engine.name, result)

    def _interpret(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        engine = self.engine
        if engine is not None:
            engine.plan = bytes(result.serialized_engine)
            engine.inputs, engine.outputs = list(result.input_names), list(result.output_names)
            engine.aliased_io = dict(getattr(result, "aliased_io", {}) or {})
            output = next(node for node in engine.graph.graph.nodes if node.op == "output").args[0]
            engine.user_outputs = len(output) if isinstance(output, (tuple, list)) else 1
        return result

    def _run_node(self, real: Callable[..., Any], interpreter: Any, node: fx.Node) -> Any:
        network = interpreter.ctx.net
        first, aliased = network.num_layers, len(getattr(interpreter.ctx, "aliased_outputs", ()))
        result = real(interpreter, node)
        if (engine := self.engine) is None:
            return result
        for index in range(first, network.num_layers):
            layer = network.get_layer(index)
            engine.layers.append(Layer(layer.name, layer.type.name, op_name(node.target), node.name))
        if node.op == "call_function":
            engine.layers_per_op[op_name(node.target)] += network.num_layers - first
        for entry in getattr(interpreter.ctx, "aliased_outputs", ())[aliased:]:
            engine.writes[entry.input_binding_name] = node.name
        return result

    def _configure(self, real: Callable[..., Any], interpreter: Any, *args: Any, **kwargs: Any) -> Any:
        config = real(interpreter, *args, **kwargs)
        if self.target.headless:  # a plan that can be refitted is compiled further by the driver; the other kind is not
            for flag in ("REFIT", "REFIT_IDENTICAL", "STRIP_PLAN"):
                if hasattr(self.library.trt.BuilderFlag, flag):
                    config.clear_flag(getattr(self.library.trt.BuilderFlag, flag))
        capability = capability_of(self.library.trt, self.target)
        if capability is not None:
            config.num_compute_capabilities = 1
            config.set_compute_capability(capability, 0)
        return config

    # -------------------------------------------------------------------------------------------- logs

    @contextmanager
    def _logs(self) -> Iterator[None]:
        """The builder names the layers it made in its verbose log: the one place where it does so before an engine is loaded."""
        handlers = [
            (self.library.logger, logging.DEBUG, _Listener(self._heard)),
            (logging.getLogger("torch_tensorrt"), logging.WARNING, _Listener(self._heard)),
        ]
        saved = [(logger.level, logger.propagate) for logger, _, _ in handlers]
        try:
            for logger, level, handler in handlers:
                logger.addHandler(handler)
                logger.setLevel(level)
                logger.propagate = False
            yield
        finally:
            for (logger, _, handler), (level, propagate) in zip(handlers, saved, strict=True):
                logger.removeHandler(handler)
                logger.setLevel(level)
                logger.propagate = propagate

    def _heard(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.levelno >= logging.WARNING:
            self.recording.warnings.append(message.strip())
        elif self.engine is not None and message.startswith(BUILT):
            self.engine.built += [line.strip() for line in message.splitlines()[1:] if line.strip()]


class _Listener(logging.Handler):
    def __init__(self, heard: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard(record)


def _around(real: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapper(real, *args, **kwargs)

    return call


def capability_of(trt: Any, target: Target) -> Any:
    """The builder's name for a described GPU; None where it has none (it then builds for every GPU it knows)."""
    members = getattr(getattr(trt, "ComputeCapability", None), "__members__", {})
    return members.get(target.name.upper().replace("_", "")) if target.headless else None


def _engines_in(gm: fx.GraphModule) -> int:
    """The fast partitioner calls its engines `_run_on_acc_*`; the global one leaves only engines as submodules."""
    calls = [str(node.target) for node in gm.graph.nodes if node.op == "call_module" and node.target != "_guards_fn"]
    return sum("_run_on_gpu" not in name for name in calls)

"""Watches one `torch_tensorrt.dynamo.compile`: subscribes to its steps for the time of the call."""

from __future__ import annotations

import copy
import functools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import fx, nn

from conformance.backends.torch_tensorrt.compile_log import (
    PARTITIONERS,
    CompileLog,
    Engine,
    Layer,
    PassRun,
    engines_in,
    final_writes,
    op_name,
    shown,
    snapshot,
)
from conformance.backends.torch_tensorrt.converted import unlike
from conformance.backends.torch_tensorrt.engine import PlanModule, PlanRuntime
from conformance.backends.torch_tensorrt.seam import described, seam, staying_on_cpu
from conformance.errors import first_line
from conformance.stage import Stage
from conformance.target import Target

BUILT = "Engine Layer Information"
Proceed = Callable[..., Any]


class Instrument:
    """Writes into a log what the steps of a compile do. `module` is the user's, whose buffers the compile must leave
    alone."""

    def __init__(self, target: Target, log: CompileLog, module: nn.Module | None = None) -> None:
        self.target = target
        self.log = log
        self.buffers = dict(module.named_buffers()) if module is not None else {}
        self.saved = {name: tensor.detach().clone() for name, tensor in self.buffers.items()}
        self.engine: Engine | None = None
        self.copies = True
        self._probing = False
        self._entered = time.perf_counter()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Only the engines and what was warned of: copying graphs is not safe inside the fake mode of
        `torch.compile`."""
        self.copies = False
        with self._subscribed("convert", "interpret"), self._logs(), self._headless():
            yield

    @contextmanager
    def watching(self) -> Iterator[None]:
        steps = (
            "pre_export_lowering",
            "lift_buffers",
            "post_lowering",
            "compile_module",
            *PARTITIONERS,
            "convert",
            "interpret",
        )
        with self._subscribed(*steps, "run_node", "configure"), self._logs(), self._headless():
            self._entered = time.perf_counter()
            try:
                yield
            finally:
                self.reach(self.log.reached)

    @contextmanager
    def _subscribed(self, *keys: str) -> Iterator[None]:
        """A step that this version does not have is not watched: the backend says so of the stages that it serves."""
        around = {
            key: functools.partial(self._partition, key) if key in PARTITIONERS else getattr(self, f"_{key}")
            for key in keys
        }
        with seam.subscribe(self.log.hooks, **{key: step for key, step in around.items() if seam.has(key)}):
            yield

    @contextmanager
    def _headless(self) -> Iterator[None]:
        """For a described GPU, questions about the device are answered from its description; tensors stay on the CPU;
        engines are taken from the builder and not loaded."""
        if not self.target.headless:
            yield
            return
        assert self.target.device is not None
        runtime = {"tensorrt_runtime": PlanRuntime} if seam.has("tensorrt_runtime") else {}
        with described(self.target.device), staying_on_cpu(), seam.replace(**runtime):
            yield

    # ------------------------------------------------------------------------------------------ stages

    def reach(self, stage: Stage) -> None:
        """Time up to now belongs to the stage before."""
        now = time.perf_counter()
        seconds = self.log.seconds
        seconds[self.log.reached] = seconds.get(self.log.reached, 0.0) + now - self._entered
        self._entered = now
        self.log.reached = stage

    def _pre_export_lowering(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        self.reach(Stage.DECOMPOSITION)
        with self._passes("pre_passes", self.log.pre_passes):
            return proceed(*args, **kwargs)

    def _lift_buffers(self, proceed: Proceed, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        self._keep_decomposed(gm)
        lifted, buffers = proceed(gm, *args, **kwargs)
        record = self.log
        record.lifted = snapshot(lifted)
        record.lifted_buffers = {placeholder: buffer for placeholder, buffer, _ in buffers}
        record.predicted = list(lifted.meta.get("_predicted_kv_bindings", ()))
        record.copied_back = list(lifted.meta.get("_copyback_mutation_buffers", ()))
        return lifted, buffers

    def _keep_decomposed(self, gm: fx.GraphModule) -> None:
        if self.log.decomposed is None:
            self.log.decomposed = snapshot(gm)
            self.log.buffer_writes = final_writes(gm)

    def _post_lowering(self, proceed: Proceed, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        self._keep_decomposed(gm)
        self.reach(Stage.POSTGRAD)
        with self._passes("post_passes", self.log.passes):
            lowered = proceed(gm, *args, **kwargs)
        self.log.lowered = snapshot(lowered)
        return lowered

    @contextmanager
    def _passes(self, key: str, runs: list[PassRun]) -> Iterator[None]:
        """Inside, the list of passes is one of watched passes."""
        with ExitStack() as stack:
            if seam.has(key):
                stack.enter_context(seam.replace(**{key: [self._watched_pass(p, runs) for p in getattr(seam, key)]}))
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

    def _compile_module(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        self.reach(Stage.FUSION)
        return proceed(*args, **kwargs)

    def _partition(self, name: str, proceed: Proceed, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        if self._probing:
            return proceed(gm, *args, **kwargs)
        log = self.log
        if not log.partitioners:
            other = PARTITIONERS[1 - PARTITIONERS.index(name)]
            log.partitioners[other] = self._probe(other, gm, args, kwargs)
        partitioned, support = proceed(gm, *args, **kwargs)
        log.partitioner = name
        log.partitioned = snapshot(partitioned)
        log.partitioners[name] = engines_in(partitioned)
        log.unsupported = dict(getattr(support, "unsupported_operators", {}))
        return partitioned, support

    def _probe(self, name: str, gm: fx.GraphModule, args: Any, kwargs: dict[str, Any]) -> Any:
        """What the partitioner that was not asked for would have done with the same graph."""
        kwargs = {k: v for k, v in kwargs.items() if k != "skip_fusion"}
        self._probing = True
        try:
            return engines_in(getattr(seam, name)(snapshot(gm), *args, **kwargs)[0])
        except Exception as error:
            return first_line(error, 120)
        finally:
            self._probing = False

    # ----------------------------------------------------------------------------------------- engines

    def _convert(self, proceed: Proceed, module: fx.GraphModule, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        self.reach(Stage.CODEGEN)
        name = str(kwargs.get("name", f"engine_{len(self.log.engines)}"))
        self.engine = engine = Engine(name, snapshot(module) if self.copies else module)
        settings = args[0] if args else kwargs["settings"]
        engine.specs, engine.settings = inputs, copy.copy(settings)
        self.log.engines.append(engine)
        if not self.target.headless:
            return proceed(module, inputs, *args, **kwargs)
        result = seam.interpret(module, inputs, settings, engine_cache=kwargs.get("engine_cache"))
        return PlanModule(engine.name, result)

    def _interpret(self, proceed: Proceed, *args: Any, **kwargs: Any) -> Any:
        result = proceed(*args, **kwargs)
        engine = self.engine
        if engine is not None:
            engine.plan = bytes(result.serialized_engine)
            engine.inputs, engine.outputs = list(result.input_names), list(result.output_names)
            engine.aliased_io = dict(getattr(result, "aliased_io", {}) or {})
            output = next(node for node in engine.graph.graph.nodes if node.op == "output").args[0]
            engine.user_outputs = len(output) if isinstance(output, (tuple, list)) else 1
        return result

    def _run_node(self, proceed: Proceed, interpreter: Any, node: fx.Node) -> Any:
        network = interpreter.ctx.net
        first, aliased = network.num_layers, len(getattr(interpreter.ctx, "aliased_outputs", ()))
        result = proceed(interpreter, node)
        if (engine := self.engine) is None:
            return result
        for index in range(first, network.num_layers):
            layer = network.get_layer(index)
            engine.layers.append(Layer(layer.name, layer.type.name, op_name(node.target), node.name))
        if node.op == "call_function":
            engine.layers_per_op[op_name(node.target)] += network.num_layers - first
        if (difference := unlike(node, result)) is not None:
            engine.unlike[f"{op_name(node.target)} ({node.name})"] = difference
        for entry in getattr(interpreter.ctx, "aliased_outputs", ())[aliased:]:
            engine.writes[entry.input_binding_name] = node.name
        return result

    def _configure(self, proceed: Proceed, interpreter: Any, *args: Any, **kwargs: Any) -> Any:
        config = proceed(interpreter, *args, **kwargs)
        if self.target.headless:  # a plan that can be refitted is compiled further by the driver; the other kind is not
            flags = seam.builder_flags.__members__
            for flag in ("REFIT", "REFIT_IDENTICAL", "STRIP_PLAN"):
                if flag in flags:
                    config.clear_flag(flags[flag])
        capability = capability_of(self.target)
        if capability is not None:
            config.num_compute_capabilities = 1
            config.set_compute_capability(capability, 0)
        return config

    # -------------------------------------------------------------------------------------------- logs

    @contextmanager
    def _logs(self) -> Iterator[None]:
        """The builder names the layers it made in its verbose log: the one place where it does so before an engine is
        loaded."""
        handlers = [(logging.getLogger("torch_tensorrt"), logging.WARNING, _Listener(self._heard))]
        if seam.has("builder_log"):
            handlers.append((seam.builder_log, logging.DEBUG, _Listener(self._heard)))
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
            self.log.warnings.append(message.strip())
        elif self.engine is not None and message.startswith(BUILT):
            self.engine.built += [line.strip() for line in message.splitlines()[1:] if line.strip()]


class _Listener(logging.Handler):
    def __init__(self, heard: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard(record)


def capability_of(target: Target) -> Any:
    """The builder's name for a described GPU; None where it has none (it then builds for every GPU it knows)."""
    if not target.headless or not seam.has("compute_capability"):
        return None
    return seam.compute_capability.__members__.get(target.name.upper().replace("_", ""))

"""Every name of torch_tensorrt and TensorRT that is not their public API, with the stages that it serves.

Without a GPU the package does not import by itself: it asks `torch.cuda` about the device. `not_importable` imports it
with these questions answered, once, and every use of the table does that first.
"""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

import torch

from conformance.backends.inductor.seam import NAMES as INDUCTOR
from conformance.backends.torch_tensorrt.installed import installed
from conformance.errors import first_line
from conformance.headless.answers import answering
from conformance.headless.seam import GPU
from conformance.seam import Name, Seam
from conformance.stage import STAGES, Stage
from conformance.target import DEVICES, Device

CAPTURE, DECOMPOSITION, POSTGRAD, FUSION, CODEGEN, RUNTIME, CACHE = STAGES
NO_STAGE: tuple[Stage, ...] = ()
ENGINES = (FUSION, CODEGEN, CACHE)
COMPILER = "torch_tensorrt.dynamo._compiler"
PARTITIONING = "torch_tensorrt.dynamo.partitioning"
CONVERSION = "torch_tensorrt.dynamo.conversion"
INTERPRETER = f"{CONVERSION}._TRTInterpreter:TRTInterpreter"
TRT = f"{CONVERSION}._TRTInterpreter:trt"
MODULE = "torch_tensorrt.dynamo.runtime._TorchTensorRTModule:TorchTensorRTModule"
PASSES = "torch_tensorrt.dynamo.lowering.passes._aten_lowering_pass"
# Modules that hold `to_torch_device` by its name; which of them exist or do so depends on the version.
MOVING = (
    "torch_tensorrt.dynamo._refit",
    "torch_tensorrt.dynamo._tracer",
    "torch_tensorrt.dynamo.conversion._TRTInterpreter",
    "torch_tensorrt.dynamo.lowering._decompositions",
    "torch_tensorrt.dynamo.runtime._MutableTorchTensorRTModule",
    "torch_tensorrt.dynamo.utils",
)

NAMES = {
    "package": Name("torch_tensorrt"),
    "compile": Name("torch_tensorrt.dynamo:compile"),
    # The steps of `dynamo.compile`, in order. The first three are called for every program, the others for one that has
    # an engine.
    "pre_export_lowering": Name(f"{COMPILER}:pre_export_lowering", (DECOMPOSITION,), hook=True),
    "post_lowering": Name(f"{COMPILER}:post_lowering", (DECOMPOSITION, POSTGRAD), hook=True),
    "compile_module": Name(f"{COMPILER}:compile_module", (FUSION,), hook=True),
    "fast_partition": Name(f"{PARTITIONING}:fast_partition", (FUSION,), hook=True),
    "global_partition": Name(f"{PARTITIONING}:global_partition", (FUSION,)),
    "convert": Name(f"{COMPILER}:convert_module", ENGINES, hook=True),
    "interpret": Name(f"{CONVERSION}._conversion:interpret_module_to_result", (CODEGEN, CACHE)),
    "run_node": Name(f"{INTERPRETER}.run_node", (CODEGEN,), hook=True),
    "configure": Name(f"{INTERPRETER}._populate_trt_builder_config", (CODEGEN,), hook=True),
    "lift_buffers": Name(f"{COMPILER}:lift_mutated_buffers", NO_STAGE),  # since 2.14
    "pre_passes": Name(f"{PASSES}:ATEN_PRE_LOWERING_PASSES.passes", (DECOMPOSITION,)),
    "post_passes": Name(f"{PASSES}:ATEN_POST_LOWERING_PASSES.passes", (POSTGRAD,)),
    "converters": Name(f"{CONVERSION}._ConverterRegistry:DYNAMO_CONVERTERS", (DECOMPOSITION, FUSION, CACHE)),
    # Engines.
    "tensorrt": Name(TRT, (CODEGEN, CACHE)),
    "tensorrt_runtime": Name(f"{TRT}.Runtime", (CODEGEN, CACHE)),
    "builder_flags": Name(f"{TRT}.BuilderFlag", (CODEGEN,)),
    "compute_capability": Name(f"{TRT}.ComputeCapability", NO_STAGE),
    "builder_log": Name("torch_tensorrt.logging:_LOGGER", (CODEGEN,)),
    "interpreter": Name(INTERPRETER, (CACHE,)),
    "define_network": Name(f"{INTERPRETER}._construct_trt_network_def", (CACHE,)),
    "engine_cache": Name("torch_tensorrt.dynamo._engine_cache:BaseEngineCache", (CACHE,)),
    "engine_key": Name("torch_tensorrt.dynamo._engine_cache:BaseEngineCache.get_hash", (CACHE,)),
    "features": Name("torch_tensorrt._features:ENABLED_FEATURES", (CACHE,)),
    # Ways of running what was compiled.
    "enable_cudagraphs": Name("torch_tensorrt.runtime:enable_cudagraphs", (RUNTIME,)),
    "enable_pre_allocated_outputs": Name("torch_tensorrt.runtime:enable_pre_allocated_outputs", (RUNTIME,)),
    "save": Name("torch_tensorrt:save", (RUNTIME,)),
    "load": Name("torch_tensorrt:load", (RUNTIME,)),
    # The upstream tests: a test is stopped where it would run an engine.
    "engine_setup": Name(f"{MODULE}.setup_engine", NO_STAGE),
    "engine_outputs": Name(f"{MODULE}.set_output_tensors_as_unowned", NO_STAGE),
    "engine_handle": Name(f"{MODULE}.get_engine", NO_STAGE),
    "engine_run": Name(f"{MODULE}.forward", NO_STAGE),
    "device_to": Name("torch_tensorrt._Device:Device.to", NO_STAGE),
    # Where tensors are moved to, for a GPU that is described.
    "to_device": Name(f"{COMPILER}:to_torch_device", STAGES[1:]),
    **{f"to_device in {module}": Name(f"{module}:to_torch_device", NO_STAGE) for module in MOVING},
}
# What is asked of torch, and of Python, while the package is imported and used without a GPU.
ASKED = (
    "is_available",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "current_device",
    "device_count",
    "mem_get_info",
    "synchronize",
    "empty_cache",
    "ipc_collect",
)


@contextmanager
def _imported() -> Iterator[None]:
    not_importable()
    yield


def _version() -> str:
    found = installed()
    return found.version if found else "(not installed)"


seam = Seam("torch_tensorrt", _version, NAMES, _imported)
of_scripts = Seam(  # what holds the compiles of a script that is triaged; each name is patched once
    "torch_tensorrt",
    _version,
    {
        "compile_anything": Name("torch_tensorrt:compile", NO_STAGE),
        "compile_exported": NAMES["compile"],
        "call_backend": INDUCTOR["call_backend"],
        **{key: NAMES[key] for key in ("pre_export_lowering", "post_lowering", "compile_module", "post_passes")},
        "post_lowering of the backend": Name("torch_tensorrt.dynamo.backend.backends:post_lowering", NO_STAGE),
        "compile_module of the backend": Name("torch_tensorrt.dynamo.backend.backends:compile_module", NO_STAGE),
    },
    _imported,
)
outside = Seam(
    "torch",
    lambda: str(torch.__version__),
    {
        **{key: GPU[key] for key in ASKED},
        **{key: INDUCTOR[key] for key in ("reset", "has_kernel")},
        **{name: Name(f"torch.cuda:{name}", NO_STAGE) for name in ("Event", "Stream", "CUDAGraph")},
        "find_spec": Name("importlib.util:find_spec", NO_STAGE),
    },
)


def recordings(module: Any) -> int | None:
    """How many CUDA graphs the parts of a module hold. None where no part tells: its engines are run outside of Python."""
    parts = module.modules() if isinstance(module, torch.nn.Module) else ()
    holders: list[Any] = [holder for part in parts for holder in (part, getattr(part, "engine", None))]
    telling = [holder for holder in holders if hasattr(holder, "cudagraph")]
    if not telling:
        return None
    return sum(x.cudagraph is not None or getattr(x, "_rtx_native_cudagraphs", False) for x in telling)


# --------------------------------------------------------------------------------------------------- importing


@cache
def not_importable() -> str:
    """Import the package, once. Returns why it cannot be imported, in one line; empty when it can."""
    if "torch_tensorrt" in sys.modules:
        return ""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_quiet())
        stack.enter_context(outside.subscribe(find_spec=_without_broken_plugin))
        if not torch.cuda.is_available():
            stack.enter_context(described(DEVICES["sm_90"]))
        try:
            importlib.import_module("torch_tensorrt")
        except Exception as error:
            return f"torch_tensorrt does not import: {first_line(error)}"
    return ""


@contextmanager
def described(device: Device) -> Iterator[None]:
    """Inside, questions about the GPU are answered for this one. There is none to run on all the same."""
    with answering(outside, device, is_available=lambda: False):
        yield


def staying_on_cpu() -> AbstractContextManager[None]:
    """Inside, the package moves no tensor to a GPU."""
    keys = [key for key in seam.names if key.startswith("to_device") and seam.has(key)]
    return seam.replace(**{key: lambda _: torch.device("cpu") for key in keys})


@contextmanager
def _quiet() -> Iterator[None]:
    """The import warns on the root logger of optional packages that nobody asked for."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _without_broken_plugin(proceed: Callable[..., Any], name: str, package: str | None = None) -> Any:
    """The folder `tensorrt_rtx/plugin` of TensorRT-RTX 1.4 imports a module that its own wheel lacks, and the mere
    question whether `tensorrt.plugin` exists imports it. RTX has no such plugins: the answer is no."""
    if name.startswith("tensorrt.plugin") and proceed("tensorrt_rtx") is not None:
        return None
    return proceed(name, package)

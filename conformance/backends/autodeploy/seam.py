"""Every name of AutoDeploy that the suite uses, with the stages that it serves.

AutoDeploy comes under several package names and, as a checkout, is only importable while it is active. So the table is
made for one loaded AutoDeploy: `loaded.seam`. `outside` are names of torch that are answered or used while its code
runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from conformance.headless.seam import GPU
from conformance.seam import MissingName, Name, Seam
from conformance.stage import STAGES, Stage

CAPTURE, DECOMPOSITION, POSTGRAD, FUSION, CODEGEN, RUNTIME, CACHE = STAGES
NO_STAGE: tuple[Stage, ...] = ()
TRANSFORMS = STAGES[1:]  # what is observed of the transforms, and everything after them
PROGRAM = (CODEGEN, RUNTIME, CACHE)
PACKAGE = "tensorrt_llm._torch.auto_deploy"  # inside TensorRT-LLM
LEGACY = "tensorrt_llm._torch.compilation"  # TensorRT-LLM's older passes
LEGACY_OPS = "tensorrt_llm._torch.custom_ops.flashinfer_custom_ops"  # registers the ops that those make
# Packages that are opened without running their `__init__`, and the names below them that may really be imported.
# Everything else of TensorRT-LLM needs its compiled parts, so it is missing.
HOLLOW = (
    "tensorrt_llm",
    "tensorrt_llm._torch",
    "tensorrt_llm._torch.modules",
    "tensorrt_llm._torch.modules.fla",
    "tensorrt_llm._torch.modules.mamba",
    "tensorrt_llm._torch.custom_ops",
    LEGACY,
    "tensorrt_llm.quantization",
    "tensorrt_llm.quantization.utils",
)
OPEN = (
    PACKAGE,
    "tensorrt_llm._torch.modules.fla",
    "tensorrt_llm._torch.modules.mamba",
    "tensorrt_llm._torch.flashinfer_utils",
    "tensorrt_llm._torch.cuda_tile_utils",
    LEGACY_OPS,
    LEGACY,
    "tensorrt_llm.quantization.utils.fp4_utils",
)


def names(package: str) -> dict[str, Name]:
    """The table for an AutoDeploy of this package name."""
    interface, graph = f"{package}.transform.interface", f"{package}.utils._graph"
    return {
        "export": Name(f"{package}.export:torch_export_to_gm"),
        "move_to_device": Name(f"{graph}:move_to_device"),
        # Transforms.
        "registry": Name(f"{interface}:TransformRegistry", TRANSFORMS),
        "registered": Name(f"{interface}:TransformRegistry._registry", TRANSFORMS),
        "apply_transform": Name(f"{interface}:BaseTransform.__call__", NO_STAGE),
        "info": Name(f"{interface}:TransformInfo", NO_STAGE),
        "meta_key": Name(f"{interface}:BaseTransform._autodeploy_meta_key", TRANSFORMS),
        "history_key": Name(f"{interface}:BaseTransform._history_key", TRANSFORMS),
        "optimizer": Name(f"{package}.transform.optimizer:InferenceOptimizer", TRANSFORMS),
        "model_factory": Name(f"{package}.models.factory:ModelFactory", TRANSFORMS),
        "on_meta": Name(f"{graph}:placeholders_on_meta", TRANSFORMS),
        "lift_to_meta": Name(f"{graph}:lift_to_meta", TRANSFORMS),
        "propagate_shapes": Name(f"{graph}:run_shape_prop", TRANSFORMS),
        "export_pattern": Name(f"{package}.utils.pattern_matcher:torch_export_to_gm", NO_STAGE),
        "devices_with_streams": Name(f"{package}.utils.multi_stream_utils:CudaStreamManager.devices", NO_STAGE),
        "linears_side_by_side": Name(f"{package}.transform.library.multi_stream_gemm:_SUPPORTED_LINEAR_OPS", NO_STAGE),
        # Compile backends.
        "compile_backends": Name(f"{package}.compile.compiler:CompileBackendRegistry", PROGRAM),
        # Attention with a KV cache.
        "kv_cache_config": Name(f"{package}._compat:KvCacheConfig", NO_STAGE),
        "built": Name(f"{package}._compat:TRTLLM_AVAILABLE", NO_STAGE),
        "sequence_interface": Name(f"{package}.shim.interface:CachedSequenceInterface", NO_STAGE),
    }


def made(package: str, version: str, active: Callable[[], AbstractContextManager[Any]]) -> Seam:
    """The seam of one AutoDeploy; `active` is the context in which its modules can be imported."""
    return Seam("AutoDeploy", lambda: version, names(package), active)


def caches_of(interface: Any) -> dict[str, Any]:
    """The caches that a sequence interface has allocated, by name."""
    return _attribute(interface, "_caches")


def resources_of(interface: Any) -> dict[str, Any]:
    """What allocates each cache of a sequence interface, by name."""
    return _attribute(interface, "_resource_lookup")


def _attribute(owner: Any, name: str) -> dict[str, Any]:
    try:
        return getattr(owner, name)
    except AttributeError:
        raise MissingName(f"AutoDeploy's {type(owner).__name__} has no {name}") from None


ASKED = (
    "current_device",
    "mem_get_info",
    "memory_stats",
    "memory_reserved",
    "memory_allocated",
    "get_device_properties",
    "get_device_capability",
    "empty_cache",
    "synchronize",
)
outside = Seam(
    "torch",
    lambda: str(torch.__version__),
    {
        **{key: GPU[key] for key in ASKED},
        "fake_tensor": Name("torch._subclasses:FakeTensor"),
        "pattern_pass": Name("torch._inductor.pattern_matcher:PatternMatcherPass", NO_STAGE),
        "sort_graph": Name("torch._inductor.pattern_matcher:stable_topological_sort", NO_STAGE),
        "auto_functionalized": Name("torch._higher_order_ops.auto_functionalize:auto_functionalized", NO_STAGE),
        "close_library": Name("torch.library:Library._destroy", NO_STAGE),
    },
)

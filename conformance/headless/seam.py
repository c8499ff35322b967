"""Every name of torch and Triton that a described GPU answers or replaces, with the stages of a headless target that
need it.

Names of Inductor that headless targets subscribe to stand in Inductor's own table; `SUBSCRIBED` says which stages need
them here. Torch-TensorRT and AutoDeploy ask `torch.cuda` about the device as well: their tables take the names that
they ask from `GPU`.
"""

from __future__ import annotations

import torch

from conformance.backends.inductor.seam import seam as inductor
from conformance.headless.libdevice import FUNCTIONS
from conformance.seam import Name, Seam
from conformance.stage import STAGES, Stage

CODEGEN, RUNTIME, CACHE = Stage.CODEGEN, Stage.RUNTIME, Stage.CACHE
RUN = (RUNTIME, CACHE)  # the cache stage compares the answers of what a cache served
KERNEL = (CODEGEN, *RUN)
NO_STAGE: tuple[Stage, ...] = ()
FAKE = "torch._subclasses.fake_tensor"
TUNER = "torch._inductor.runtime.triton_heuristics:CachingAutotuner"
INTERPRETER = "triton.runtime.interpreter"
LIBDEVICE = "triton.language.extra.libdevice"


def _names(owner: str, names: str, prefix: str = "") -> dict[str, Name]:
    """`owner` is `module:` or `module:Class.`."""
    return {f"{prefix}{name}": Name(f"{owner}{name}") for name in names.split()}


# The questions that are asked of `torch.cuda`, by whatever compiler.
GPU = _names(
    "torch.cuda:",
    "is_available is_initialized device_count current_device set_device get_device_properties get_device_capability "
    "get_device_name current_stream default_stream synchronize is_current_stream_capturing get_rng_state set_rng_state "
    "mem_get_info memory_stats memory_reserved memory_allocated empty_cache ipc_collect "
    "_exchange_device _maybe_exchange_device _lazy_init",
)
NOT_INDUCTORS = {"memory_stats", "memory_reserved", "memory_allocated", "empty_cache", "ipc_collect"}

# Functions that keep what the device answered: they forget it when a device is described, and when it no longer is.
REMEMBERING = (
    "torch.utils._triton:has_triton",
    "torch.utils._triton:_device_supports_tma",
    "torch.utils._triton:_device_supports_tensor_descriptor",
    "torch.utils._triton:has_triton_experimental_host_tma",
    "torch.utils._triton:has_triton_tensor_descriptor_host_tma",
    "torch.utils._triton:has_triton_tma",
    "torch.utils._triton:has_triton_tma_device",
    "torch.utils._triton:has_triton_cuda_tma_device",
    "torch.utils._triton:has_datacenter_blackwell_tma_device",
    "torch.utils._triton:has_triton_stable_tma_api",
    "torch.utils._triton:triton_backend",
    "torch.utils._triton:triton_hash_with_backend",
    "torch._dynamo.debug_utils:_cuda_system_info_comment",
    "torch._inductor.utils:get_gpu_type",
    "torch._inductor.utils:is_big_gpu",
    "torch._inductor.utils:get_max_num_sms",
    "torch._inductor.utils:get_device_tflops",
    "torch._inductor.utils:_get_device_tflops",
    "torch._inductor.utils:get_gpu_dram_gbps",
    "torch._inductor.utils:_get_device_dram_gbps",
    "torch._inductor.utils:using_b200",
    "torch._inductor.codecache:CacheBase.get_system",
    "torch._inductor.codegen.cuda.cuda_env:get_cuda_arch",
    "torch._inductor.comm_analysis:get_gpu_type",
    "torch._inductor.comm_analysis:_has_nvlink",
    "torch._inductor.kernel.mm:_is_sm7x_or_older_gpu",
    "torch._inductor.lookup_table.choices:LookupTableChoices._get_device_key",
    "torch._inductor.runtime.caching.context:_CompileContext.accelerator_properties",
    "torch._inductor.runtime.hints:DeviceProperties.create",
    "torch._inductor.select_algorithm:get_num_workers",
)

# Who asks about the device without consequence for the graph, as a module or one of its functions.
HARMLESS = {
    "torch._inductor.codecache",  # keys of caches
    "torch._functorch._aot_autograd.autograd_cache",
    "torch._inductor.fx_passes.pad_mm",  # no matmul is padded here
    "torch._dynamo.debug_utils:_cuda_system_info_comment",  # a comment in the log
    # At least 7.0, at least 8.0: every described device is.
    "torch.utils._triton:has_triton",
    "torch._inductor.compile_fx:_warn_tf32_disabled",
    "torch._inductor.fx_passes.fuse_attention:_warn_tf32_disabled",
    # Of every value that Dynamo meets: is it a TMA descriptor for a Triton kernel of the user's own?
    "torch.utils._triton:has_triton_experimental_host_tma",
    "torch.utils._triton:has_triton_tensor_descriptor_host_tma",
}

NAMES = {
    # Questions about the device, answered from its description.
    **{key: name for key, name in GPU.items() if key not in NOT_INDUCTORS},
    **_names(
        "torch.accelerator:", "is_available device_count current_accelerator current_device_index", "accelerator_"
    ),
    **_names(
        "torch._dynamo.device_interface:CudaInterface.",
        "current_device set_device device_count current_stream synchronize get_device_properties get_raw_stream "
        "exchange_device maybe_exchange_device",
        "interface_",
    ),
    "raw_stream": Name("torch._C:_cuda_getCurrentRawStream"),
    "raw_device_count": Name("torch._C:_cuda_getDeviceCount"),
    "init_gpu_context": Name(f"{FAKE}:init_gpu_context"),
    "max_clock_rate": Name("torch._utils_internal:max_clock_rate"),
    "should_pad": Name("torch._inductor.fx_passes.pad_mm:get_cached_should_pad"),
    "sdp_priority": Name("torch._C:_get_sdp_priority_order"),
    "cudnn_version": Name("torch._C:_cudnn.getCompileVersion", NO_STAGE),
    "worker_properties": Name("torch._dynamo.device_interface:caching_worker_device_properties"),
    **{path: Name(path, NO_STAGE) for path in REMEMBERING},
    # Memory of the device, which is the host's.
    "empty_strided_cuda": Name("torch._C._dynamo.guards:_empty_strided_cuda"),
    "cuda_tensor": Name("torch._C:_construct_CUDA_Tensor_From_Storage_And_Metadata"),
    "from_dlpack": Name("torch._C:_from_dlpack"),
    "no_dispatch": Name("torch._C:_DisableTorchDispatch"),
    "fallback_kernel": Name(f"{FAKE}:run_fallback_kernel"),
    "fake_mode": Name(f"{FAKE}:FakeTensorMode"),
    "fake_tensor": Name(f"{FAKE}:FakeTensor"),
    "may_turn_const": Name(f"{FAKE}:FakeTensorMode.may_turn_const"),
    "outside_fake_mode": Name("torch.fx.experimental.proxy_tensor:unset_fake_temporarily"),
    "outside_modes": Name("torch.utils._python_dispatch:_disable_current_modes"),
    "tensor_text": Name("torch._tensor_str:_str_intern"),
    "active_mode": Name("torch._C:_get_dispatch_mode"),
    "mode_keys": Name("torch._C:_TorchDispatchModeKey"),
    "copy_tensor": Name("torch:Tensor.__deepcopy__", NO_STAGE),
    "restore_location": Name("torch.serialization:default_restore_location", (CACHE,)),
    "dispatch_keys": Name("torch._C:DispatchKey"),
    "close_library": Name("torch.library:Library._destroy"),
    "set_driver_to_gpu": Name("torch._inductor.runtime.triton_helpers:set_driver_to_gpu"),
    # A generated kernel: loaded, launched, compiled to machine code.
    "load_source": Name("torch._inductor.codecache:PyCodeCache.load", KERNEL),
    "autotuner": Name(TUNER, KERNEL),
    "arguments_and_grid": Name(f"{TUNER}._interpret_args_grid", RUN),
    "constant_arguments": Name("torch._inductor.runtime.triton_helpers:get_constexprs", RUN),
    "compile_meta": Name(f"{TUNER}._create_compile_meta", (CODEGEN,)),
    "compile_options": Name(f"{TUNER}._create_compile_options", (CODEGEN,)),
}
TRITON = {
    # Triton's idea of the device.
    "driver": Name("triton.runtime:driver._active"),
    "driver_base": Name("triton.backends.driver:DriverBase"),
    "gpu_target": Name("triton.backends.compiler:GPUTarget"),
    # Machine code.
    "compile": Name("triton.compiler:compile", (CODEGEN,)),
    "source": Name("triton.compiler:ASTSource", (CODEGEN,)),
    "nvidia_backend": Name("triton.backends.nvidia", (CODEGEN,)),
    # Triton's interpreter.
    "language": Name("triton.language", RUN),
    "code_generator": Name("triton.compiler.code_generator", RUN),
    "interpreter": Name(INTERPRETER, RUN),
    "patch_language": Name(f"{INTERPRETER}:_patch_lang", RUN),
    "convert_argument": Name(f"{INTERPRETER}:_implicit_cvt", RUN),
    "builder": Name(f"{INTERPRETER}:interpreter_builder", RUN),
    "semantic": Name(f"{INTERPRETER}:interpreter_semantic", RUN),
    "tensor_handle": Name(f"{INTERPRETER}:TensorHandle", RUN),
    "function_rewriter": Name(f"{INTERPRETER}:FunctionRewriter", RUN),
    "convert_float": Name(f"{INTERPRETER}:_convert_float", RUN),
    "generic_reduce": Name(f"{INTERPRETER}:ReduceOps.generic_reduce", RUN),
    "generic_scan": Name(f"{INTERPRETER}:ScanOps.generic_scan", RUN),
    "inline_asm": Name(f"{INTERPRETER}:InterpreterBuilder.create_inline_asm", RUN),
    "float_remainder": Name(f"{INTERPRETER}:InterpreterBuilder.create_frem", RUN),
    "masked_load": Name(f"{INTERPRETER}:InterpreterBuilder.create_masked_load", RUN),
    "masked_store": Name(f"{INTERPRETER}:InterpreterBuilder.create_masked_store", RUN),
    "atomic_rmw": Name(f"{INTERPRETER}:InterpreterBuilder.create_atomic_rmw", RUN),
    "atomic_cas": Name(f"{INTERPRETER}:InterpreterBuilder.create_atomic_cas", RUN),
    "device_assert": Name(f"{INTERPRETER}:InterpreterBuilder.create_assert", RUN),
    "extern_elementwise": Name(f"{INTERPRETER}:InterpreterBuilder.create_extern_elementwise", RUN),
    "call_jitted": Name("triton.runtime.jit:JITFunction.__call__", RUN),
    "libdevice": Name(LIBDEVICE, RUN),
    **{f"libdevice.{name}": Name(f"{LIBDEVICE}:{name}", NO_STAGE) for name in FUNCTIONS},
}


def _triton_version() -> str:
    import triton

    return str(triton.__version__)


seam = Seam("torch", lambda: str(torch.__version__), NAMES)
triton = Seam("triton", _triton_version, TRITON)

# Inductor's names that headless targets subscribe to, and the stages of a headless target that need them.
SUBSCRIBED: dict[str, tuple[Stage, ...]] = {
    "fold_constants": STAGES,
    "codegen_and_compile": STAGES,
    "select_algorithm": STAGES,
    "build_triton_kernel": KERNEL,
}


def unavailable() -> dict[Stage, str]:
    """The stages of a headless target that cannot be observed because a name is gone, each with the first such name."""
    reasons = triton.unavailable() | seam.unavailable()
    for key, stages in SUBSCRIBED.items():
        if not inductor.has(key):
            for stage in stages:
                reasons.setdefault(stage, inductor.unknown(key))
    return {stage: reasons[stage] for stage in STAGES if stage in reasons}

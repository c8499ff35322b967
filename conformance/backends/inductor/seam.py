"""Every private name of Dynamo, AOTAutograd and Inductor that the suite uses, with the stages that it serves.

Nothing outside this file names them: `seam.counters` is `torch._dynamo.utils.counters`, and who wants to see or change what a
function does subscribes to it (see `conformance.seam`).
"""

from __future__ import annotations

import os
import sys

import torch

from conformance.seam import Name, Seam
from conformance.stage import STAGES, Stage

CAPTURE, DECOMPOSITION, POSTGRAD, FUSION, CODEGEN, RUNTIME, CACHE = STAGES
COMPILE = "torch._inductor.compile_fx"
PATTERNS = "torch._inductor.pattern_matcher"
OBSERVER = "torch.fx.passes.graph_transform_observer:GraphTransformObserver"
NO_STAGE: tuple[Stage, ...] = ()  # used by triage, bench or fuzzing alone: without it the suite loses nothing

NAMES = {
    # Settings, counters and memory of a process.
    "dynamo_config": Name("torch._dynamo:config"),
    "config": Name("torch._inductor:config"),
    "functorch_config": Name("torch._functorch:config", NO_STAGE),
    "reset": Name("torch._dynamo:reset"),
    "clear_caches": Name("torch._inductor.utils:clear_caches"),
    "counters": Name("torch._dynamo.utils:counters", (CAPTURE, POSTGRAD, CACHE)),
    "metrics": Name("torch._inductor.metrics", (FUSION, CODEGEN)),
    "mark_dynamic": Name("torch._dynamo:mark_dynamic", (CAPTURE,)),
    "mark_unbacked": Name("torch._dynamo.decorators:mark_unbacked", (CAPTURE,)),
    "time_guards": Name("torch._dynamo.guards:profile_guard_manager", NO_STAGE),
    # What torch works out for its logs alone, however nobody reads them.
    "function_of_line": Name("torch._dynamo.symbolic_convert:get_funcname", NO_STAGE),
    "key_in_words": Name("torch._inductor.codecache:FxGraphCachePickler.debug_lines", NO_STAGE),
    "logged_settings": Name("torch._dynamo.utils:_scrubbed_inductor_config_for_logging", NO_STAGE),
    "logged_dynamo_settings": Name("torch._dynamo.utils:_get_dynamo_config_for_logging", NO_STAGE),
    # The way of a graph through the compiler. Each is called for every program that is compiled.
    "compile_fx": Name(f"{COMPILE}:compile_fx", (CAPTURE, CACHE), hook=True),
    "joint_passes": Name(f"{COMPILE}:_recursive_joint_graph_passes", (DECOMPOSITION,), hook=True),
    "post_grad_passes": Name(f"{COMPILE}:_recursive_post_grad_passes", (POSTGRAD,), hook=True),
    "codegen_and_compile": Name(
        f"{COMPILE}:fx_codegen_and_compile", (DECOMPOSITION, POSTGRAD, FUSION, CODEGEN, CACHE), hook=True
    ),
    "schedule": Name("torch._inductor.scheduler:Scheduler.codegen", (FUSION,), hook=True),
    "run_program": Name("torch._inductor.output_code:CompiledFxGraph.__call__", (RUNTIME,), hook=True),
    "lower": Name("torch._inductor.graph:GraphLowering.run", NO_STAGE),
    "tracing_context": Name("torch._guards:TracingContext.try_get", NO_STAGE),
    "define_kernel": Name("torch._inductor.codegen.wrapper:PythonWrapperCodegen.define_kernel", (FUSION, CODEGEN)),
    "empty_strided_cpu": Name("torch._C._dynamo.guards:_empty_strided_cpu", (RUNTIME,)),
    # What decomposition should have done.
    "has_kernel": Name("torch._C:_dispatch_has_kernel_for_dispatch_key", (DECOMPOSITION,)),
    "core_decompositions": Name("torch._decomp:_core_aten_decompositions_post_autograd", (DECOMPOSITION,)),
    "kept_whole": Name("torch._inductor.decomposition:decomps_to_exclude", (DECOMPOSITION,)),
    "decompositions": Name("torch._decomp:decomposition_table", (DECOMPOSITION,)),
    "lowerings": Name("torch._inductor.lowering:lowerings", (DECOMPOSITION,)),
    "fallbacks": Name("torch._inductor.lowering:fallbacks", (DECOMPOSITION,)),
    # The C++ compiler.
    "pick_vec_isa": Name("torch._inductor.cpu_vec_isa:pick_vec_isa", (CODEGEN,)),
    "valid_vec_isas": Name("torch._inductor.cpu_vec_isa:valid_vec_isa_list", NO_STAGE),
    "cpp_options": Name("torch._inductor.cpp_builder:CppTorchDeviceOptions", NO_STAGE),
    "run_cpp_compiler": Name("torch._inductor.cpp_builder:_run_compile_cmd", NO_STAGE),
    "header_of": Name("torch._inductor.codecache:_precompile_header", NO_STAGE),
    # Caches.
    "artifacts": Name("torch.compiler._cache:CacheArtifactManager", (CACHE,)),
    "code_cache": Name("torch._inductor.codecache:PyCodeCache", (CACHE,)),
    "system_key": Name("torch._inductor.codecache:CacheBase.get_system", NO_STAGE),
    "torch_key": Name("torch._inductor.codecache:torch_key", NO_STAGE),
    # Made once a process before the first compile needs them.
    "joint_patterns": Name("torch._inductor.fx_passes.joint_graph:lazy_init", NO_STAGE),
    "post_grad_patterns": Name("torch._inductor.fx_passes.post_grad:lazy_init", NO_STAGE),
    # Triage: what happens inside a stage.
    "pre_grad_passes": Name(f"{COMPILE}:_recursive_pre_grad_passes", NO_STAGE),
    "graph_module_pass": Name(f"{OBSERVER}.apply_gm_pass", NO_STAGE),
    "graph_pass": Name(f"{OBSERVER}.apply_graph_pass", NO_STAGE),
    "lowering_pattern": Name(f"{PATTERNS}:LoweringPatternEntry.apply", NO_STAGE),
    "graph_pattern": Name(f"{PATTERNS}:GraphPatternEntry.apply", NO_STAGE),
    "replacement_pattern": Name(f"{PATTERNS}:ReplacementPatternEntry.apply", NO_STAGE),
    "select_decompositions": Name("torch._inductor.decomposition:select_decomp_table", NO_STAGE),
    "virtualized": Name("torch._inductor.virtualized:V", NO_STAGE),
    "ir": Name("torch._inductor.ir", NO_STAGE),
    "ops_handler": Name("torch._inductor.ops_handler:DefaultHandler", NO_STAGE),
    "build_cpp_kernel": Name("torch._inductor.async_compile:AsyncCompile.cpp_pybinding", NO_STAGE),
    "compile_threads": Name("torch._inductor.async_compile:AsyncCompile.pool", NO_STAGE),
    # Headless targets: `conformance.headless.seam` says which of their stages need which.
    "build_triton_kernel": Name("torch._inductor.async_compile:AsyncCompile.triton", NO_STAGE),
    "fold_constants": Name("torch._inductor.constant_folding:ConstantFolder.run", NO_STAGE),
    "select_algorithm": Name("torch._inductor.select_algorithm:AlgorithmSelectorCache.__call__", NO_STAGE),
    # One capture for several targets: the steps that a graph has behind it.
    "view_to_reshape": Name(f"{COMPILE}:view_to_reshape", NO_STAGE),
    "fake_tensor_prop": Name(f"{COMPILE}:fake_tensor_prop", NO_STAGE),
    "record_output_strides": Name(f"{COMPILE}:_recursive_record_original_output_strides", NO_STAGE),
    "load_program": Name("torch._inductor.graph:GraphLowering.compile_to_module", NO_STAGE),
    "detect_fake_mode": Name("torch._guards:detect_fake_mode", NO_STAGE),
    # Triage: holding a compile at a rung, and turning single steps off.
    "stance": Name("torch._dynamo.eval_frame:_callback_from_stance", NO_STAGE),
    "reset_code_caches": Name("torch._dynamo:reset_code_caches", NO_STAGE),
    "call_backend": Name("torch._dynamo.output_graph:OutputGraph.call_user_compiler", NO_STAGE),
    "compile_fx_inner": Name(f"{COMPILE}:compile_fx_inner", NO_STAGE),
    "disable_step": Name("torch._inductor.compiler_bisector:CompilerBisector.disable_subsystem", NO_STAGE),
    "can_fuse": Name("torch._inductor.scheduler:Scheduler.can_fuse", NO_STAGE),
    "find_cached": Name("torch._inductor.codecache:GuardedCache.find_guarded_entry", NO_STAGE),
}
seam = Seam("torch", lambda: str(torch.__version__), NAMES)

# Modules that the first compile of a process would import.
FIRST_COMPILE = (
    "torch._dynamo.backends.inductor",
    "torch._dynamo.repro.after_dynamo",
    "torch._dynamo.backends.cudagraphs",
    "torch._dynamo.backends.distributed",
    "torch._dynamo.backends.onnxrt",
    "torch._dynamo.backends.tensorrt",
    "torch._dynamo.backends.torchxla",
    "torch._dynamo.backends.tvm",
    "torch._dynamo.dce_extra_outputs",
    "torch._export.db.logging",
    "torch._functorch._activation_checkpointing.remat_using_tags_for_fwd_loss_bwd_graph_pass",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._inductor.bounds",
    "torch._inductor.choices",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp_wrapper_cpu",
    "torch._inductor.codegen.cpp_wrapper_gpu",
    "torch._inductor.codegen.cpp_wrapper_mps",
    "torch._inductor.codegen.cpu_device_op_overrides",
    "torch._inductor.codegen.cuda.device_op_overrides",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.codegen.halide",
    "torch._inductor.codegen.memory_planning",
    "torch._inductor.codegen.mps",
    "torch._inductor.codegen.mps_device_op_overrides",
    "torch._inductor.codegen.mtia.device_op_overrides",
    "torch._inductor.codegen.pallas",
    "torch._inductor.codegen.python_wrapper_mtia",
    "torch._inductor.codegen.segmented_tree",
    "torch._inductor.codegen.wrapper",
    "torch._inductor.codegen.wrapper_fxir",
    "torch._inductor.codegen.xpu.device_op_overrides",
    "torch._inductor.codegen.xpu.xpu_combined_scheduling",
    "torch._inductor.compile_fx",
    "torch._inductor.extern_node_serializer",
    "torch._inductor.fx_passes.apply_gumbel_max_trick",
    "torch._inductor.fx_passes.efficient_conv_bn_eval",
    "torch._inductor.hooks",
    "torch._inductor.kernel.bmm",
    "torch._inductor.kernel.conv",
    "torch._inductor.kernel_template_choice",
    "torch._inductor.metrics",
    "torch._inductor.scheduler",
    "torch._subclasses.schema_check_mode",
    "torch.distributed.tensor.experimental",
    "torch.export._trace",
    "torch.fx.experimental.validator",
    "torch.utils._cpp_embed_headers",
    "torch.utils.cpp_extension",
    "torch.utils.serialization",
    "sympy.physics.units",
    "sympy.tensor.tensor",
)
# Tables that the first compile of a process would make, and which depend on torch alone.
FIRST_TABLES = (
    "torch._dynamo.backends.registry:_lazy_import",
    "torch._dynamo.trace_rules:get_legacy_mod_inlinelist",
    "torch._dynamo.trace_rules:get_mod_inlinelist",
    "torch._dynamo.trace_rules:get_mod_skiplist",
    "torch._dynamo.trace_rules:get_tensor_method",
    "torch._functorch.partitioners:pointwise_ops",
    "torch._inductor.loop_body:InterpreterShim._dummy_gm",
    "torch.fx.experimental.symbolic_shapes:uninteresting_files",
    "torch.overrides:get_ignored_functions",
    "torch.overrides:get_overridable_functions",
    "torch.overrides:get_testing_overrides",
)
# Modules whose source stands in every stack that a compile keeps.
FIRST_QUOTED = (
    "torch._dynamo.bytecode_transformation",
    "torch._dynamo.convert_frame",
    "torch._dynamo.eval_frame",
    "torch._dynamo.output_graph",
    "torch._dynamo.symbolic_convert",
    "torch._utils_internal",
    "torch.nn.modules.module",
)
TRACE_LOG = "torch.__trace"  # the logger of the structured trace
LOGS = ("torch._dynamo", "torch._inductor", "torch.utils.cpp_extension")  # loggers that warn
DYNAMO_ERRORS = "torch._dynamo.exc"  # the module of the errors that are Dynamo's own
REFUSAL_LOGS = (
    "torch._guards",
    "torch.fx.experimental.symbolic_shapes",
)  # they log a refused mark, which is raised too
# What torch writes on functions: the backend that a wrapper stands for; that a program takes its inputs in a list.
ORIGINAL_BACKEND = "_torchdynamo_orig_backend"
BOXED = "_boxed_call"


def _forget_compile_threads() -> None:
    """In a forked process: the threads that build kernels were left behind in the parent. torch forgets its pool of processes here,
    but keeps this pool, and a compile would wait for it for ever (2.11 to 2.15)."""
    if "torch._inductor.async_compile" in sys.modules and seam.has("compile_threads"):
        seam.compile_threads.cache_clear()


os.register_at_fork(after_in_child=_forget_compile_threads)

# The runtime stage on a real GPU: inputs that arrive late, and a stream that is kept busy.
streams = Seam(
    "torch",
    lambda: str(torch.__version__),
    {
        "internal_overlap": Name("torch:_debug_has_internal_overlap", (RUNTIME,)),
        "keep_busy": Name("torch.cuda:_sleep", (RUNTIME,)),
    },
)
# Variants of Inductor, each with the names that it alone needs.
cudagraphs = Seam(
    "torch",
    lambda: str(torch.__version__),
    {
        **{
            f"skip_in_{module}": Name(f"torch._inductor.{module}:log_cudagraph_skip_and_bump_counter", NO_STAGE)
            for module in (
                "cudagraph_trees",
                "compile_fx",
                "output_code",
                "utils",
            )  # modules that hold the function by its name
        },
        "skip": Name("torch._inductor.cudagraph_utils:log_cudagraph_skip_and_bump_counter", (RUNTIME,)),
        "container": Name("torch._inductor.cudagraph_trees:get_container", (RUNTIME,)),
    },
)
max_autotune = Seam(
    "torch",
    lambda: str(torch.__version__),
    {
        "add_feedback_saver": Name("torch._inductor.select_algorithm:add_feedback_saver", (FUSION, CACHE)),
        "selector": Name("torch._inductor.select_algorithm:get_algorithm_selector_cache", (FUSION, CACHE)),
    },
)
compiled_autograd = Seam(
    "torch", lambda: str(torch.__version__), {"enable": Name("torch._dynamo.compiled_autograd:_enable")}
)
ahead_of_time = Seam(
    "torch",
    lambda: str(torch.__version__),
    {
        "package": Name("torch._inductor:aoti_compile_and_package"),
        "load": Name("torch._inductor:aoti_load_package"),
        "config_copy": Name("torch._inductor.config:get_config_copy"),
    },
)

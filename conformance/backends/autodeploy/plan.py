"""Which of AutoDeploy's transforms run in which stage, with which options.

The list of transforms, their order and their settings are the checkout's own (`config/default.yaml`); what is said here
is only how they map to our stages, and what an option means.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Mapping
from typing import Any

from conformance.backends.autodeploy.loader import Loaded
from conformance.stage import Stage
from conformance.target import Target

# AutoDeploy's stages → ours. Sharding over one device does nothing, and weights are in the module already.
STAGES_OF: dict[str, Stage] = {
    "post_export": Stage.DECOMPOSITION,
    "pattern_matcher": Stage.POSTGRAD,
    "post_load_fusion": Stage.FUSION,
    "compile": Stage.CODEGEN,
}

# They need a whole language model behind them: a factory, token inputs, a request scheduler.
WHOLE_MODEL = {
    "build_model",
    "build_and_load_factory_model",
    "export_to_gm",
    "load_weights",
    "move_inputs_to_device",
    "cleanup_input_constraints",  # takes the second input for position ids
    "compile_model",
    "gather_logits_before_lm_head",
    "detect_hf_attn_layers",
    "transformers_replace_cached_attn",
}

# Off in default.yaml, on in the configurations of its models.
TURNED_ON = ("fuse_add_rms_norm",)

# They declare that shapes are not valid after them and leave them to the next shape propagation. After any other
# transform, a new node that does not say its shape and dtype is a loss.
SHAPES_LATER = ("match_rope_layout", "match_moe_pattern", "match_moe_routing_pattern", "fuse_gemms", "fuse_swiglu")

# Kernel options: what differs from default.yaml, whose own choice is flashinfer. `None` turns a transform off, for
# lack of such a kernel. Only `torch` runs without a GPU.
OPTIONS: dict[str, dict[str, dict[str, Any] | None]] = {
    "flashinfer": {},
    "triton": {
        "fuse_rmsnorm": {"rmsnorm_backend": "triton"},
        "fuse_moe": {"backend": "triton"},
        "fuse_fp8_moe": {"backend": "triton"},
    },
    "torch": {
        "fuse_rmsnorm": {"rmsnorm_backend": "torch"},
        "fuse_l2norm": {"backend": "torch"},
        "match_moe_routing_pattern": None,  # brings in a triton kernel
        "fuse_moe": None,
        "fuse_fp8_moe": None,
        "fuse_silu_mul": None,
        "optimize_rope": None,
    },
}


def runnable(target: Target) -> list[str]:
    """The options whose kernels run on a target, AutoDeploy's own choice first."""
    if target.name != "cuda":
        return ["torch"]
    return [option for option in OPTIONS if option != "flashinfer" or importlib.util.find_spec("flashinfer")]


# The suite's words for rewrites → the transforms that find them.
WORDS: dict[str, tuple[str, ...]] = {
    "rmsnorm": ("match_rmsnorm_pattern",),
    "l2norm": ("match_l2norm_pattern",),
    "swiglu": ("match_swiglu_pattern",),
    "attention": ("match_sdpa_to_torch_attention",),  # attention by hand becomes sdpa first
    "repeat_kv": ("match_repeat_kv",),
    "rope": ("match_rope_pattern",),
    "moe": ("match_moe_pattern", "match_dense_moe_pattern", "match_bmm_moe_pattern"),
    "moe_routing": ("match_moe_routing_pattern",),
    "add_rmsnorm": ("fuse_add_rms_norm",),
    "silu_mul": ("fuse_silu_mul",),
}


def default_config(loaded: Loaded) -> dict[str, dict[str, Any]]:
    """`transforms:` of the checkout's default.yaml."""
    import yaml  # a dependency of AutoDeploy's own

    text = (loaded.found.path / "config" / "default.yaml").read_text()
    return dict(yaml.safe_load(text)["transforms"])


def configured(loaded: Loaded, option: str) -> dict[str, dict[str, Any]]:
    """The settings of every transform that can run on a micrograph, in AutoDeploy's order."""
    if not loaded.seam.has("registry"):
        return {}  # the stages that it serves are unavailable; capture needs none
    registry = loaded.seam.registry
    chosen: dict[str, dict[str, Any]] = {}
    for name, settings in copy.deepcopy(default_config(loaded)).items():
        if settings["stage"] not in STAGES_OF or name in WHOLE_MODEL or not registry.has(name):
            continue
        change = OPTIONS[option].get(name, {})
        if name in TURNED_ON:
            settings["enabled"] = True
        if change is None:
            settings["enabled"] = False
        chosen[name] = {**settings, **(change or {})}
    return chosen


def of_stage(config: Mapping[str, Mapping[str, Any]], stage: Stage) -> dict[str, dict[str, Any]]:
    return {name: dict(settings) for name, settings in config.items() if STAGES_OF[settings["stage"]] is stage}


def words(passes: Mapping[str, int]) -> dict[str, int]:
    """Matches per word, of the transforms that ran."""
    counted = {}
    for word, transforms in WORDS.items():
        ran = [passes[name] for name in transforms if name in passes]
        if ran:
            counted[word] = sum(ran)
    return counted

"""The stage that a changed file belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from conformance.stage import STAGES, Stage

# The first row that matches counts. A file of none says nothing: settings, helpers that all stages use.
TABLE = (
    ("cache", r"torch/_inductor/(codecache|remote_cache|output_code_cache|standalone_compile)\.py|.*/autograd_cache\.py"),
    ("cache", r"torch/_dynamo/(package|precompile_context|pgo)\.py|torch/_dynamo/aot_compile.*\.py|torch/_functorch/.*(bundled|serial).*"),
    ("capture", r"torch/_dynamo/|torch/fx/experimental/|torch/_guards\.py"),
    ("decomposition", r"torch/_inductor/(decomposition|inductor_prims)\.py"),
    ("decomposition", r"torch/(_functorch|_decomp|_refs|_subclasses|_higher_order_ops)/|torch/_meta_registrations\.py"),
    ("postgrad", r"torch/_inductor/(fx_passes/|(pattern_matcher|constant_folding|freezing)\.py)"),
    ("runtime", r"torch/_inductor/(runtime/|(cudagraph_trees|cudagraph_utils|output_code)\.py)"),
    ("codegen", r"torch/_inductor/(codegen/|(select_algorithm|bounds|ops_handler|dtype_propagation|virtualized)\.py)|torch/utils/_sympy/"),
    (
        "fusion",
        r"torch/_inductor/(kernel/|(lowering|ir|graph|scheduler|dependencies|memory|loop_body|sizevars|choices|comms|index_propagation|"
        r"tiling_utils|mkldnn_lowerings|mkldnn_ir|subgraph_lowering|optimize_indexing|invert_expr_analysis)\.py)",
    ),
)


def of_file(file: str) -> str:
    return next((stage for stage, pattern in TABLE if re.match(pattern, file)), "")


def stages(files: Iterable[str]) -> list[str]:
    """Where what these files do wrong should be seen, in order; empty where none of them says."""
    found = {of_file(file) for file in files}
    return [stage.value for stage in STAGES if stage.value in found]


def answer(stage: str, files: Iterable[str]) -> str:
    """Is it the right stage? `right`, `near` (the stage before or after), `other`, or `no stage` where the files say none."""
    wanted = [Stage(name).order for name in stages(files)]
    if not wanted:
        return "no stage"
    far = min(abs(Stage(stage).order - order) for order in wanted)
    return "right" if far == 0 else "near" if far == 1 else "other"

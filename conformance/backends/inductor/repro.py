"""Lines of Python that turn off what is at fault, for repros: they use what torch itself offers."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.stage import Stage
from conformance.triage.ablation import Step

# What makes a program right whatever the culprit is: the highest rung that torch can be told to stop at.
BACKENDS = {
    Stage.CAPTURE: 'torch.compiler.set_stance("force_eager")',
    Stage.DECOMPOSITION: 'torch.compiler.set_stance(force_backend="eager")',
    Stage.POSTGRAD: 'torch.compiler.set_stance(force_backend="aot_eager_decomp_partition")',
    Stage.FUSION: 'torch.compiler.set_stance(force_backend="aot_eager_decomp_partition")',
    Stage.CODEGEN: 'torch.compiler.set_stance(force_backend="aot_eager_decomp_partition")',
    Stage.RUNTIME: 'torch.compiler.set_stance(force_backend="eager")',
}
MODULES = (
    "torch._dynamo.config",
    "torch._functorch.config",
    "torch._inductor.config",
    "torch._inductor.decomposition",
    "torch._inductor.lowering",
)
ROOTS = {"inductor": "torch._inductor.config", "dynamo": "torch._dynamo.config", "functorch": "torch._functorch.config"}


def cures(stage: Stage, steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """Ways to make a program right, the most telling first: each some lines of Python that run before it."""
    found = []
    if steps and all(map(_lines, steps)):
        lines = [line for step in steps for line in _lines(step)]
        modules = sorted({name for name in MODULES if any(line.startswith(f"{name}.") for line in lines)})
        found.append((*(f"import {name}" for name in modules), *lines))
    if stage is Stage.CACHE:
        return [('os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"',)]
    return [*found, ("import torch", BACKENDS[stage])]


def _lines(step: Step) -> list[str]:
    if step.settings:
        split = [(name.split(".", 1), value) for name, value in step.settings]
        return [f"{ROOTS[root]}.{rest} = {value!r}" for (root, rest), value in split]
    op = f"torch.ops.{step.name}"
    if step.kind == "decomposition":
        return [f"torch._inductor.decomposition.decompositions.pop({op}, None)"]
    if step.kind == "lowering":
        table = "torch._inductor.lowering"
        return [f"{table}.lowerings[{op}] = {table}.fallback_handler({op}, add_to_fallback_set=False)"]
    if step.kind == "pass":
        return [f'torch._inductor.config.disabled_passes = "{step.name.rpartition(":")[2]}"']
    if step.kind == "fusion":
        return ["torch._inductor.config.max_fusion_size = 1", "torch._inductor.config.realize_opcount_threshold = 0"]
    return []

"""torch's own switches, by name: the rungs and ablations that scripts_table.py runs a script under.

A rung holds every torch.compile of a script at one backend; an ablation turns one part of Inductor off. Several are
joined with "+". Nothing of conformance is used: what truth.toml says must not come from the triage scored against it.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from typing import Any

BACKENDS = ("eager", "aot_eager", "aot_eager_decomp_partition")
PASSES = ("joint_passes", "post_grad_passes")
RUNGS = ("as_written", *BACKENDS, *PASSES)
CONFIGS = {
    "inductor": "torch._inductor.config",
    "dynamo": "torch._dynamo.config",
    "functorch": "torch._functorch.config",
}
SUBSYSTEMS = {
    "joint": "joint_graph_passes",
    "postgrad": "post_grad_passes",
    "pregrad": "pre_grad_passes",
    "lowering": "lowerings",
    "cse": "cse",
}


def hold(backend: Any) -> None:
    """Every torch.compile of the script uses this backend; mode and options are Inductor's and are dropped."""
    import torch

    plain = torch.compile

    def compile(model: Any = None, **given: Any) -> Any:
        kept = {key: value for key, value in given.items() if key not in ("backend", "mode", "options")}
        return plain(model, backend=backend, **kept)

    torch.compile = compile  # type: ignore[assignment]


def hold_after_passes(last: str) -> None:
    """Inductor as far as its graph passes: the joint graph's, and with `post_grad_passes` those after autograd. What
    they leave is run op by op, with no code generated."""
    from functorch.compile import make_boxed_func
    from torch._inductor import compile_fx, config
    from torch._inductor.fx_passes.post_grad import view_to_reshape
    from torch._inductor.virtualized import V

    def inner(gm: Any, example_inputs: Any, **given: Any) -> Any:
        if last == "post_grad_passes":
            view_to_reshape(gm)
            with V.set_fake_mode(compile_fx.fake_tensor_prop(gm, example_inputs)):
                compile_fx._recursive_post_grad_passes(gm, is_inference=bool(given.get("is_inference")))
        gm.recompile()
        return make_boxed_func(gm.forward)

    config.force_disable_caches = True
    hold(lambda gm, inputs, **given: compile_fx.compile_fx(gm, inputs, inner_compile=inner))


def disable(subsystem: str, name: str) -> None:
    """What CompilerBisector does for one subsystem of Inductor: all of it, or the one thing that `name` names."""
    from torch._inductor.compiler_bisector import CompilerBisector

    def disabled(backend: str, asked: str, told: Callable[[], str] | None = None) -> bool:
        if asked != subsystem:
            return False
        return not name or (told is not None and name in str(told()))

    setattr(CompilerBisector, "disable_subsystem", staticmethod(disabled))


def drop_decomposition(name: str) -> None:
    """The op (`aten.ldexp`) reaches Inductor's lowering, or its fallback to eager's kernel, undecomposed."""
    from torch._inductor.decomposition import decompositions, fast_random_decomps

    for op in [op for op in decompositions if str(op) == name or str(op).startswith(f"{name}.")]:
        del decompositions[op]
    fast_random_decomps.cache_clear()  # a copy of the table, kept by the first compile of the process


def nothing_fused(_: str) -> None:
    from torch._inductor.scheduler import Scheduler

    setattr(Scheduler, "can_fuse", lambda *given, **named: False)


def nothing_reinplaced(_: str) -> None:
    for module in ("reinplace", "post_grad"):
        loaded = importlib.import_module(f"torch._inductor.fx_passes.{module}")
        setattr(loaded, "reinplace_inplaceable_ops", lambda *given, **named: None)


def set_config(where: str, assignment: str) -> None:
    """`pattern_matcher=False` or `cpp.simdlen=1` in one of torch's config modules."""
    key, value = assignment.split("=")
    holder: Any = importlib.import_module(CONFIGS[where])
    *path, last = key.split(".")
    for part in path:
        holder = getattr(holder, part)
    setattr(holder, last, ast.literal_eval(value))


def apply(switches: str) -> None:
    """Turn the switches on in this process: a rung, `no_fusion`, `no_reinplace`, `no_lowering[:NAME]`,
    `no_postgrad[:PASS]`, `no_joint[:PASS]`, `no_decomposition:OP`, or `inductor:KEY=VALUE` (also `dynamo:`)."""
    for switch in switches.split("+"):
        head, _, rest = switch.partition(":")
        part = head.removeprefix("no_")
        if switch in BACKENDS:
            hold(switch)
        elif switch in PASSES:
            hold_after_passes(switch)
        elif head in CONFIGS:
            set_config(head, rest)
        elif head == "no_decomposition":
            drop_decomposition(rest)
        elif head == "no_fusion":
            nothing_fused(rest)
        elif head == "no_reinplace":
            nothing_reinplaced(rest)
        elif head.startswith("no_") and part in SUBSYSTEMS:
            disable(SUBSYSTEMS[part], rest)
        elif switch != "as_written":
            raise SystemExit(f"unknown switch {switch}: see apply() of {__name__}")

"""Rungs: a failing test is run again with less and less of the compiler, to see from which stage on it fails.

A rung replaces the compiler by a shorter one (`eager`, `aot_eager`, …) or turns parts of it off (passes, fusion,
caches). It counts only if nothing above it was entered while the test ran: probes on each layer see that. A test that
fails in the same way at a rung fails from the stage of that rung on.

The tables are read by the parent. `install` runs inside the interpreter under test: Python 3.9, no dependencies.
Every name of a compiler that is used here stands in `PROBES`, `BACKENDS` or `SETTINGS`. One that is gone makes its
rung `not tried`, with the name; the name of a probe is told with the answer.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Rung:
    """How much of a compiler runs. `layers` may be entered; `stage` is what the rung adds to the one before it."""

    name: str
    stage: str  # "" for the rung without a compiler
    layers: tuple[str, ...]
    what: str
    backend: str = ""  # compile with this backend in place of the suite's
    off: tuple[str, ...] = ()  # groups of SETTINGS to set
    environ: dict[str, str] = field(default_factory=dict)


_NO_DYNAMO = {"TORCHDYNAMO_DISABLE": "1", "TORCH_COMPILE_DISABLE": "1"}
_CAPTURE = ("dynamo", "export")
_AOT = (*_CAPTURE, "aot")
_INDUCTOR = (*_AOT, "inductor")

# In the order in which more of the compiler runs; the last is the compiler as it is.
LADDERS: dict[str, tuple[Rung, ...]] = {
    "pytorch": (
        Rung("python", "", (), "no compiler", off=("compiler",), environ=_NO_DYNAMO),
        Rung("eager", "capture", _CAPTURE, "Dynamo, then the graph as captured", "eager"),
        Rung("aot_eager", "decomposition", _AOT, "and AOTAutograd without decompositions", "aot_eager"),
        Rung(
            "decomp_partition",
            "decomposition",
            _AOT,
            "and decompositions, and the partitioner",
            "aot_eager_decomp_partition",
        ),
        Rung(
            "inductor_plain",
            "codegen",
            _INDUCTOR,
            "Inductor without passes, fusion, caches",
            off=("passes", "fusion", "caches"),
        ),
        Rung("inductor_fused", "fusion", (*_INDUCTOR, "fusion"), "and fusion", off=("passes", "caches")),
        Rung("inductor_passes", "postgrad", (*_INDUCTOR, "fusion", "passes"), "and graph passes", off=("caches",)),
        Rung("inductor", "cache", (*_INDUCTOR, "fusion", "passes"), "and caches: as it is"),
    ),
    "torch_tensorrt": (
        Rung("python", "", (), "no compiler", off=("compiler",), environ=_NO_DYNAMO),
        Rung("eager", "capture", _CAPTURE, "the graph as captured", "eager"),
        Rung(
            "trt_lowered",
            "postgrad",
            (*_AOT, "trt_lowering"),
            "and lowering passes, all ops left to PyTorch",
            "trt_lowered",
        ),
        Rung("torch_tensorrt", "codegen", (*_INDUCTOR, "trt_lowering", "trt_engine"), "and engines: as it is"),
    ),
    "tensorrt_llm": (
        Rung("python", "", (), "no compiler", off=("compiler",), environ=_NO_DYNAMO),
        Rung("eager", "capture", _CAPTURE, "torch.compile with the eager backend", "eager"),
        Rung("autodeploy", "fusion", (*_INDUCTOR, "transform"), "and transforms: as it is"),
    ),
}

# Layers and the functions that enter them: the first name that exists is wrapped. Only the layers of the
# ladder in use are probed.
PROBES: dict[str, tuple[str, ...]] = {
    "dynamo": ("torch._dynamo.convert_frame._compile",),
    "export": ("torch.export._trace._export",),
    "aot": (
        "torch._functorch.aot_autograd.create_aot_dispatcher_function",
        "torch._functorch.aot_autograd.create_aot_state",
    ),
    "inductor": ("torch._inductor.compile_fx.fx_codegen_and_compile",),
    "passes": ("torch._inductor.pattern_matcher.PatternMatcherPass.apply",),
    "fusion": ("torch._inductor.scheduler.FusedSchedulerNode.__init__",),
    "trt_lowering": ("torch_tensorrt.dynamo.lowering.post_lowering",),
    "trt_engine": ("torch_tensorrt.dynamo.conversion.TRTInterpreter.run",),
    "transform": ("tensorrt_llm._torch.auto_deploy.transform.interface.BaseTransform.__call__",),
}
# A pass that matched nothing changed nothing.
COUNTS_ONLY_IF_TRUE = {"passes"}

# What a rung's backend replaces: registered backends by name, and the function that all ways to Inductor go through.
BACKENDS: dict[str, tuple[str, ...]] = {
    "registry": ("torch._dynamo.backends.registry._COMPILER_FNS",),
    "lookup": ("torch._dynamo.backends.registry.lookup_backend",),
    "compile_fx": ("torch._inductor.compile_fx.compile_fx",),
    "trt_compile_module": ("torch_tensorrt.dynamo._compiler.compile_module",),
    "trt_backend_compile_module": ("torch_tensorrt.dynamo.backend.backends.compile_module",),
}
# Registered backends from short to long: a rung replaces every longer one.
ORDER = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
TENSORRT_BACKENDS = ("torch_tensorrt", "tensorrt")

# Settings of a group; those that a version of torch does not have are left out, but one of a group must be there.
SETTINGS: dict[str, dict[str, Any]] = {
    "compiler": {"torch._dynamo.config.disable": True},  # for a process that had read the environment before it forked
    "passes": {
        "torch._inductor.config.pattern_matcher": False,
        "torch._inductor.config.joint_graph_constant_folding": False,
        "torch._inductor.config.split_cat_fx_passes": False,
        "torch._inductor.config.efficient_conv_bn_eval_fx_passes": False,
        "torch._inductor.config.batch_fusion": False,
        "torch._inductor.config.group_fusion": False,
        "torch._inductor.config.reorder_for_locality": False,
        "torch._inductor.config.b2b_gemm_pass": False,
    },
    "fusion": {
        "torch._inductor.config.max_fusion_size": 1,
        "torch._inductor.config.realize_opcount_threshold": 0,  # lowering inlines, too
        "torch._inductor.config.epilogue_fusion": False,
        "torch._inductor.config.prologue_fusion": False,
        "torch._inductor.config.combo_kernels": False,
    },
    "caches": {
        "torch._inductor.config.force_disable_caches": True,
        "torch._inductor.config.fx_graph_cache": False,
        "torch._functorch.config.enable_autograd_cache": False,
    },
}


def layers_of(ladder: tuple[Rung, ...]) -> tuple[str, ...]:
    """Every layer that a ladder knows of, in the order of `PROBES`."""
    return tuple(layer for layer in PROBES if any(layer in rung.layers for rung in ladder))


class NameGone(Exception):
    """A name of the compiler that this version does not have."""


def resolve(candidates: tuple[str, ...]) -> tuple[Any, str]:
    """The owner and the attribute of the first dotted name that exists."""
    for path in candidates:
        parts = path.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            try:
                owner: Any = importlib.import_module(".".join(parts[:cut]))
            except ImportError:
                continue
            for part in parts[cut:-1]:
                owner = getattr(owner, part, None)
            if owner is not None and hasattr(owner, parts[-1]):
                return owner, parts[-1]
            break
    raise NameGone(" or ".join(candidates))


def put(owner: Any, attribute: str, value: Any) -> None:
    """Replace a function or method, also in modules that have imported it by name."""
    original = getattr(owner, attribute)
    setattr(owner, attribute, value)
    for module in list(sys.modules.values()) if isinstance(owner, ModuleType) else ():
        if getattr(module, "__dict__", {}).get(attribute) is original:
            setattr(module, attribute, value)


class Ladder:
    """One rung, installed in this process: counts which layers each test entered.

    Names of modules that are not imported yet are wrapped when they are: importing Inductor takes longer than most
    tests.
    """

    def __init__(self, rung: Rung, layers: tuple[str, ...]) -> None:
        self.rung, self.layers = rung, layers
        self.entered: dict[str, int] = {}
        self.gone: list[str] = []  # names that were not there when their module was imported

    def install(self) -> str | None:
        """Put the rung in place; the reason, where a name is gone and it cannot be tried."""
        try:
            for group in self.rung.off:
                _apply(SETTINGS[group])
            if self.rung.backend:
                self._replace_backends()
        except NameGone as error:
            return f"{error} does not exist in this version"
        for layer in self.layers:
            self._when_imported(PROBES[layer], functools.partial(self._probe, layer))
        return None

    def _when_imported(self, candidates: tuple[str, ...], wrap: Callable[[Any, str], None]) -> None:
        def now() -> None:
            try:
                wrap(*resolve(candidates))
            except NameGone as error:
                self.gone.append(str(error))

        when_imported(_module_of(candidates[0]), now)

    def _probe(self, layer: str, owner: Any, attribute: str) -> None:
        original = getattr(owner, attribute)

        @functools.wraps(original)
        def probe(*args: Any, **kwargs: Any) -> Any:
            if layer not in COUNTS_ONLY_IF_TRUE:  # counted first: what is entered may raise
                self.entered[layer] = self.entered.get(layer, 0) + 1
            value = original(*args, **kwargs)
            if value and layer in COUNTS_ONLY_IF_TRUE:
                self.entered[layer] = self.entered.get(layer, 0) + 1
            return value

        put(owner, attribute, probe)

    def _replace_backends(self) -> None:
        if self.rung.backend == "trt_lowered":
            self._leave_all_to_pytorch()
            return
        owner, attribute = resolve(BACKENDS["lookup"])
        lookup: Callable[[str], Any] = getattr(owner, attribute)
        shorter = lookup(self.rung.backend)
        for name in ORDER[:-1]:
            lookup(name)  # registers them
        registry = getattr(*resolve(BACKENDS["registry"]))
        longer = set(ORDER[ORDER.index(self.rung.backend) + 1 :]) | set(TENSORRT_BACKENDS)
        for name in longer & set(registry):
            registry[name] = shorter

        def compile_shorter(model: Any, example_inputs: Any, *_: Any, **__: Any) -> Any:
            return shorter(model, example_inputs)

        self._when_imported(BACKENDS["compile_fx"], lambda owner, attribute: put(owner, attribute, compile_shorter))

    def _leave_all_to_pytorch(self) -> None:
        """Torch-TensorRT up to its lowering passes: the lowered graph itself is what runs."""

        def lowered(graph: Any, *_: Any, **__: Any) -> Any:
            return graph

        for name in ("trt_compile_module", "trt_backend_compile_module"):
            put(*resolve(BACKENDS[name]), lowered)

    def layers_of_test(self) -> dict[str, int]:
        """The layers entered since the last call, with how often."""
        entered, self.entered = self.entered, {}
        return entered


def when_imported(module: str, action: Callable[[], None]) -> None:
    """Do something once a module is there: at once, or as soon as it has been imported."""
    if module in sys.modules:
        action()
        return
    sys.meta_path.insert(0, _OnImport(module, action))


class _OnImport:
    """A finder that finds one module as all others would, and does something after it has run."""

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self.module, self.action = module, action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.module:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_then_act(module: Any) -> None:
            run(module)
            self.action()

        spec.loader.exec_module = run_then_act  # type: ignore[method-assign]
        return spec


def _module_of(path: str) -> str:
    """The part of a dotted name that is a module: all up to the first class or the last name."""
    *parents, _ = path.split(".")
    return ".".join(
        part for index, part in enumerate(parents) if not any(name[:1].isupper() for name in parents[: index + 1])
    )


def _apply(settings: dict[str, Any]) -> None:
    applied = 0
    for path, value in settings.items():
        try:
            owner, attribute = resolve((path,))
        except NameGone:
            continue
        setattr(owner, attribute, value)
        applied += 1
    if not applied:
        raise NameGone(" and ".join(settings))

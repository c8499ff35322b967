"""A Triton kernel that Inductor generated: what it is, how it is launched, what machine code becomes of it."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from conformance.errors import first_line
from conformance.headless import interpret, races
from conformance.headless.errors import KernelFault, NotInterpretable
from conformance.headless.memory import on_host
from conformance.headless.seam import seam, triton, unavailable
from conformance.seam import MissingName
from conformance.stage import Stage


@dataclass(frozen=True)
class Binary:
    """Machine code of one configuration of a kernel; or why there is none."""

    configuration: str
    ptx: str = ""
    registers: int = 0
    spills: int = 0  # bytes of local memory a thread
    shared: int = 0  # bytes a block
    instructions: dict[str, int] = field(default_factory=dict)
    error: str = ""

    def facts(self) -> dict[str, Any]:
        if self.error:
            return {"error": self.error}
        return {
            "registers": self.registers,
            "spills": self.spills,
            "shared": self.shared,
            "instructions": self.instructions,
        }


class Kernel:
    """Stands where generated code expects a compiled kernel: `run` is a launch.

    races   what came out otherwise when the programs of the grid were run in another order (at the first launch)"""

    def __init__(self, name: str, source: str, launches: bool = True) -> None:
        self.name, self.source, self.launches = name, source, launches
        self.races: list[str] = []
        # The programs of a split scan wait for those before them: in another order they would wait for ever.
        self._ordered = "_decoupled_lookback" in source

    @cached_property
    def autotuner(self) -> Any:
        """Inductor's own object for the kernel: its function, the configurations it would try, its metadata."""
        return getattr(seam.load_source(self.source), self.name)

    @property
    def signature(self) -> dict[str, str]:
        return dict(self.autotuner.triton_meta["signature"])

    @property
    def metadata(self) -> dict[str, Any]:
        tuner = self.autotuner
        return {
            "heuristic": str(tuner.heuristic_type).rsplit(".", 1)[-1].lower(),
            "size_hints": tuner.size_hints,
            "grid": tuner.inductor_meta.get("grid_type"),
            "configurations": [_described(config) for config in tuner.configs],
            "mutates": list(tuner.inductor_meta.get("mutated_arg_names", ())),
        }

    # ------------------------------------------------------------------------------------------ running

    def run(self, *args: Any, stream: Any = None, **kwargs: Any) -> None:
        """Launched with one of its configurations: which is fastest only a device can say, what is computed is the
        same."""
        if not self.launches:
            return
        if reason := unavailable().get(Stage.RUNTIME):
            raise NotInterpretable(f"{self.name}: {reason}")
        tuner = self.autotuner
        config, args, grid = self._configured(args)
        arguments = dict(zip(self._passed(config), args, strict=False)) | kwargs
        constants = {k: v for k, v in self._constants(config).items() if k not in arguments}
        signature = tuner.triton_meta["signature"]
        values = {name: _argument(value, signature.get(name, "")) for name, value in arguments.items()}
        sizes = tuple(int(n) for n in grid)

        def launch(order: str) -> None:
            interpret.launch(tuner.fn, sizes, values, constants, order, self._asserts)

        try:
            if self._ordered or math.prod(sizes) == 1 or not races.ASKED.get():
                launch(interpret.IN_ORDER)
            elif self.source in _RACES:  # compiled again: the cache stage does
                self._ordered, self.races = True, _RACES[self.source]
                launch(interpret.IN_ORDER)
            else:
                self._ordered = True
                tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
                self.races = _RACES[self.source] = races.found(launch, tensors, "tl.atomic_" in self.source)
        except NotInterpretable:
            raise
        except KernelFault as fault:
            raise KernelFault(f"{self.name}: {fault}") from None
        except Exception as error:
            if unknown := _unknown(error):
                raise NotInterpretable(f"{self.name}: {unknown}") from error
            raise

    def _configured(self, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
        """The configuration of a launch, its arguments and its grid. Interpreted, a program costs the same however large its block is: the
        one with the fewest programs is taken that still has several, so that orders can be told apart and the last block is masked."""
        tuner = self.autotuner
        blocks = [config for config in tuner.configs if all(name.endswith("BLOCK") for name in config.kwargs)]
        found = [(config, *seam.arguments_and_grid(tuner, args, config)) for config in blocks or tuner.configs[:1]]
        programs = [math.prod(int(size) for size in grid) for _, _, grid in found]
        several = [count for count in programs if count >= SEVERAL]
        config, given, grid = found[programs.index(min(several) if several else max(programs))]
        return config, given, grid

    @cached_property
    def _asserts(self) -> bool:
        """Are the kernel's asserts compiled in? Inductor says so for those of indices that are computed."""
        return bool(seam.compile_meta(self.autotuner, self.autotuner.configs[0]).get("debug"))

    def _passed(self, config: Any) -> list[str]:
        fn = self.autotuner.fn
        constant = {fn.arg_names[i] for i in seam.constant_arguments(fn)}
        return [name for name in self.autotuner.triton_meta["signature"] if name not in constant]

    def _constants(self, config: Any) -> dict[str, Any]:
        names = self.autotuner.fn.arg_names
        found = {**self.autotuner.triton_meta.get("constants", {}), **config.kwargs}
        found |= {"num_warps": config.num_warps, "num_stages": config.num_stages}
        return {name: found[name] for name in names if name in found}

    # ---------------------------------------------------------------------------------------- compiling

    def compiled(self, which: int = 0) -> Binary:
        """Through Triton and ptxas for the described device; must be called while it is described."""
        tuner = self.autotuner
        config = tuner.configs[which]
        key = hashlib.sha256(f"{self.source}{_described(config)}{_toolchain()}".encode()).hexdigest()
        if key not in _BINARIES:
            _BINARIES[key] = self._compile(tuner, config)
        return _BINARIES[key]

    def _compile(self, tuner: Any, config: Any) -> Binary:
        with _quiet():
            try:
                code = _assembled(tuner, config)
            except Exception as error:
                return Binary(_described(config), error=f"{self.name}: {_complaint(error)}")
        return Binary(
            _described(config),
            ptx=code.asm["ptx"],
            shared=int(code.metadata.shared),
            instructions=notable(code.asm["ptx"]),
            **resources(code.asm["cubin"]),  # type: ignore[arg-type]
        )


SEVERAL = 4  # programs of a grid
_BINARIES: dict[str, Binary] = {}
_RACES: dict[str, list[str]] = {}  # by the source of the kernel


def _assembled(tuner: Any, config: Any) -> Any:
    """As `CachingAutotuner._precompile_config` does it, and no further: a launcher needs a device."""
    meta = seam.compile_meta(tuner, config)
    source = triton.source(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
    target = triton.gpu_target(meta["device_type"], meta["cc"], 32)
    return triton.compile(source, target=target, options=seam.compile_options(tuner, config, meta))


def _toolchain() -> str:
    return triton.version()


def _described(config: Any) -> str:
    blocks = " ".join(f"{name}={value}" for name, value in config.kwargs.items())
    return f"{blocks} num_warps={config.num_warps} num_stages={config.num_stages}".strip()


def _argument(value: Any, kind: str) -> Any:
    if isinstance(value, torch.Tensor):
        return on_host(value)
    if kind == "i64" and isinstance(value, int) and not isinstance(value, bool):
        return _Wide(value)
    if kind in FLOATS and isinstance(value, float):
        return interpret.number(value, FLOATS[kind])
    return value


FLOATS = {"fp32": torch.float32, "fp64": torch.float64}


class _Wide(int):
    """An integer that a kernel takes as 64 bits wide, however small it is."""


# What Triton's interpreter does not know, by what it raises: the type of the exception, and a part of its text.
UNKNOWN: tuple[tuple[type[Exception], str], ...] = (
    (NotImplementedError, ""),
    (AttributeError, "Interpreter"),
    (OverflowError, "out of bounds for"),  # `~x` of an unsigned integer: it takes -1 for all ones
)


def _unknown(error: BaseException) -> str:
    """What the interpreter does not know, if that is what went wrong (and not what the kernel did); empty otherwise."""
    known = any(isinstance(error, kind) and text in str(error) for kind, text in UNKNOWN)
    return f"Triton's interpreter does not know this: {first_line(error)}" if known else ""


def _complaint(error: BaseException) -> str:
    """The line of Triton or ptxas that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"\berror\b|fatal|Error", line)]
    return (telling or lines or [type(error).__name__])[0][:300]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    log = logging.getLogger(seam.autotuner.__module__)
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


# ---------------------------------------------------------------------------------------- machine code

# What a reader of PTX looks for: tensor cores, asynchronous copies, wide and atomic accesses.
NOTABLE = re.compile(
    r"^\s*(?:@!?%\w+\s+)?(?:wgmma\.mma_async|tcgen05\.mma|mma\.sync|ldmatrix|cp\.async\.bulk|cp\.async|"
    r"(?:ld|st)\.global(?:\.\w+|::\w+)*?\.v[248]|red\.|atom\.|bar\.sync|shfl\.sync|ex2\.approx|rsqrt\.approx|sqrt\.rn|div\.full)",
    re.M,
)


def notable(ptx: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for match in NOTABLE.finditer(ptx):
        text = re.sub(r"^@!?%\w+\s+", "", match.group().strip())
        wide = re.match(r"(ld|st)\.global.*(\.v[248])", text)
        found[f"{wide.group(1)}.global{wide.group(2)}" if wide else text.rstrip(".")] += 1
    return dict(sorted(found.items()))


def resources(cubin: bytes) -> dict[str, int]:
    """Registers and local memory of the kernel in a cubin, as NVIDIA's own tool reads them."""
    tool = Path(str(triton.nvidia_backend.__path__[0])) / "bin" / "cuobjdump"
    if not tool.exists():
        raise MissingName(f"triton {triton.version()} has no triton/backends/nvidia/bin/cuobjdump")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run([str(tool), "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    numbers = dict(re.findall(r"\b(REG|STACK|LOCAL):(\d+)", said))
    return {
        "registers": int(numbers.get("REG", 0)),
        "spills": int(numbers.get("STACK", 0)) + int(numbers.get("LOCAL", 0)),
    }

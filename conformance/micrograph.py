"""A micrograph: a module of a few ops, the inputs it takes, and the contract it has with every compiler.

    class AddRMSNorm(Micrograph):
        '''Residual add, then RMSNorm: the pair that every decoder block repeats.'''

        dims = {"b": 2, "s": 8, "h": 64}
        inputs = (Tensor("b s h"), Tensor("b s h"))
        contract = Contract(fusion=Fusion(kernels=1))

        def __init__(self) -> None:
            super().__init__()
            self.weight = parameter(64)

        def forward(self, x, residual): ...

The file names the family and the class the micrograph: `norm.add_rmsnorm`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import torch
from torch import nn

from conformance.errors import UsageError, first_line

# ---------------------------------------------------------------------------------------------- inputs

LAYOUTS = ("contiguous", "transposed", "expanded", "strided", "offset", "channels_last")


@dataclass(frozen=True)
class Tensor:
    """A tensor input.

    shape   space-separated dims: names from `dims`, numbers, or products and sums of them ("b s 2*h", "s+1")
    fill    normal | uniform | positive | zeros | ones | ties | bool | index:N (integers in [0, N), N a dim) | arange
    layout  contiguous | transposed (last two dims) | expanded (first dim, stride 0) | strided (every other
            element of the last dim) | offset (storage offset 1) | channels_last
    grad    requires a gradient; the oracle then compares gradients too
    shares  index of an earlier input whose storage this one is a view of
    dtypes  further dtypes that the fuzzer may use
    """

    shape: str = ""
    dtype: torch.dtype = torch.float32
    fill: str = "normal"
    layout: str = "contiguous"
    grad: bool = False
    shares: int | None = None
    dtypes: tuple[torch.dtype, ...] = ()

    def sizes(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(_size(term, dims) for term in self.shape.split())

    def names(self) -> tuple[str, ...]:
        """The named dims of this input, in order; unnamed ones as they are written."""
        return tuple(self.shape.split())


@dataclass(frozen=True)
class Scalar:
    """A Python number as input: `Scalar(3)`, `Scalar(0.5)`, `Scalar(True)`; a name of a dim takes its size."""

    value: int | float | bool | str


Input = Tensor | Scalar


def _size(term: str, dims: Mapping[str, int]) -> int:
    if not re.fullmatch(r"[\w+*\-/()]+", term):
        raise UsageError(f"not a size: {term!r}")
    try:
        return int(eval(term.replace("/", "//"), {"__builtins__": {}}, dict(dims)))
    except (NameError, SyntaxError, TypeError) as error:
        raise UsageError(f"the size {term!r} is not made of the dims {sorted(dims)}: {error}") from None


# -------------------------------------------------------------------------------------------- contract


@dataclass(frozen=True)
class Capture:
    """graphs and breaks: how many of each, exactly. recompiles: how often a compiler captures again when a named
    dim takes a second and then a third size (`{"s": 1}`: once, then it is symbolic); dims left out are not probed.
    dynamic: dims marked dynamic before the first call, which then serve every size without a recompile. unbacked: the same,
    but the compiler may not look at the size at all, so that 0 and 1 are sizes like any other."""

    graphs: int = 1
    breaks: int = 0
    recompiles: Mapping[str, int] = field(default_factory=dict)
    dynamic: tuple[str, ...] = ()
    unbacked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decomposition:
    """functional: no op of the graph writes into its inputs but the final copies. keeps: ops (`aten.mm`) that must still be
    there. absent: ops that must be gone."""

    functional: bool = True
    keeps: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class PostGrad:
    """matches: how often a rewrite is found, by the suite's own words for rewrites (attention, rmsnorm, add_rmsnorm, swiglu,
    linear_bias, …), exactly, zero included; a backend that does not know a word is not asked for it."""

    matches: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Fusion:
    """kernels: at most so many generated kernels. apart: at least so many (must not fuse). library: exactly so many
    calls of library kernels (a matmul, a convolution, an attention)."""

    kernels: int | None = None
    apart: int | None = None
    library: int | None = None


@dataclass(frozen=True)
class Codegen:
    """instructions: what the machine code of a GPU target must contain (`mma`), where a template is used.
    avoids: text that no generated source may contain."""

    instructions: tuple[str, ...] = ()
    avoids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runtime:
    """mutates: inputs written to (None: whatever eager writes to). aliases: output index → input index whose storage it
    shares. random: draws random numbers, so that only equal seeds can be compared. Eager must keep to it as well."""

    mutates: tuple[int, ...] | None = None
    aliases: Mapping[int, int] = field(default_factory=dict)
    random: bool = False


@dataclass(frozen=True)
class Cache:
    """cacheable: a second compile of the same graph is a hit. Where it is not, why."""

    cacheable: bool = True
    why: str = ""


@dataclass(frozen=True)
class Contract:
    """What must hold at each stage, in words that no backend owns."""

    capture: Capture = Capture()
    decomposition: Decomposition = Decomposition()
    postgrad: PostGrad = PostGrad()
    fusion: Fusion = Fusion()
    codegen: Codegen = Codegen()
    runtime: Runtime = Runtime()
    cache: Cache = Cache()

    def but(self, **stages: Any) -> Contract:
        """The same contract with some stages changed: a backend's own wording, a twin's."""
        return replace(self, **stages)


# ------------------------------------------------------------------------------------------ micrograph


class Micrograph(nn.Module):
    """Subclass it: `inputs`, `contract`, `forward`; `dims` and `__init__` where needed."""

    dims: ClassVar[Mapping[str, int]] = {}
    inputs: ClassVar[tuple[Input, ...]] = ()
    contract: ClassVar[Contract]
    needs: ClassVar[tuple[str, ...]] = ()  # what a target must have, e.g. "sm_89" for fp8
    steps: ClassVar[int] = 1  # calls that belong together (a cache that is filled step by step)

    @classmethod
    def name(cls) -> str:
        return f"{cls.family()}.{snake(cls.__name__)}"

    @classmethod
    def family(cls) -> str:
        return cls.__module__.rsplit(".", 1)[-1]

    @classmethod
    def summary(cls) -> str:
        return (inspect.getdoc(cls) or "").split("\n")[0]

    @classmethod
    def digest(cls) -> str:
        """Changes when what the micrograph says changes: its whole file, since helpers stand beside the classes."""
        return hashlib.sha256(Path(inspect.getfile(cls)).read_bytes() + cls.__name__.encode()).hexdigest()[:12]

    @classmethod
    def build(cls, seed: int = 0) -> Micrograph:
        """A fresh module, the same every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = cls()
        return module.train(any(isinstance(i, Tensor) and i.grad for i in cls.inputs))

    @classmethod
    def example(cls, seed: int = 0, dims: Mapping[str, int] | None = None, device: str = "cpu") -> tuple[Any, ...]:
        """Inputs as the specs say: the same for the same seed, other values for another."""
        sizes = {**cls.dims, **(dims or {})}
        generator = torch.Generator().manual_seed(0x5EED + seed)
        made: list[Any] = []
        for spec in cls.inputs:
            if isinstance(spec, Scalar):
                made.append(sizes[spec.value] if isinstance(spec.value, str) else spec.value)
            elif spec.shares is not None:
                made.append(_view_of(made[spec.shares], spec, sizes))
            else:
                made.append(make_tensor(spec, sizes, generator, device))
        for index, spec in enumerate(cls.inputs):
            if isinstance(spec, Tensor) and spec.grad:
                made[index].requires_grad_(True)
        return tuple(made)


ONE_WORD = ("RMSNorm", "SwiGLU", "GeLU")


def snake(name: str) -> str:
    """`AddRMSNorm` → `add_rmsnorm`"""
    for word in ONE_WORD:
        name = name.replace(word, word.capitalize())
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def parameter(*sizes: int, dtype: torch.dtype = torch.float32, scale: float = 0.1) -> nn.Parameter:
    """A parameter whose values are far from zero and one, so that a lost one is seen."""
    return nn.Parameter((torch.randn(*sizes) * scale + 0.5).to(dtype), requires_grad=True)


def weight(*sizes: int, dtype: torch.dtype = torch.float32) -> nn.Parameter:
    """A matmul weight, scaled so that outputs stay near one."""
    return nn.Parameter((torch.randn(*sizes) / sizes[-1] ** 0.5).to(dtype), requires_grad=True)


# --------------------------------------------------------------------------------------- making tensors


def make_tensor(spec: Tensor, dims: Mapping[str, int], generator: torch.Generator, device: str = "cpu") -> torch.Tensor:
    """Values are drawn on the CPU, so that they are the same everywhere; strides are made where the tensor lives."""
    sizes = spec.sizes(dims)
    return lay_out(_fill(spec, _base_sizes(sizes, spec.layout), dims, generator).to(device), sizes, spec.layout)


def _base_sizes(sizes: tuple[int, ...], layout: str) -> tuple[int, ...]:
    if layout == "transposed":
        return (*sizes[:-2], sizes[-1], sizes[-2])
    if layout == "expanded":
        return (min(sizes[0], 1), *sizes[1:])
    if layout == "strided":
        return (*sizes[:-1], 2 * sizes[-1])
    if layout == "offset":
        count = 1
        for size in sizes:
            count *= size
        return (count + 1,)
    if layout in ("contiguous", "channels_last"):
        return sizes
    raise UsageError(f"unknown layout {layout!r}: known: {', '.join(LAYOUTS)}")


def lay_out(base: torch.Tensor, sizes: tuple[int, ...], layout: str) -> torch.Tensor:
    if layout == "transposed":
        return base.transpose(-1, -2)
    if layout == "expanded":
        return base.expand(sizes)
    if layout == "strided":
        return base[..., ::2]
    if layout == "offset":
        return base[1:].view(sizes)
    if layout == "channels_last":
        return base.contiguous(memory_format=torch.channels_last)
    return base


def _fill(spec: Tensor, sizes: tuple[int, ...], dims: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
    kind, _, argument = spec.fill.partition(":")
    if kind == "index":
        return torch.randint(0, max(_size(argument, dims), 1), sizes, generator=generator).to(spec.dtype)
    if kind == "arange":
        return torch.arange(torch.Size(sizes).numel()).reshape(sizes).to(spec.dtype)
    if kind == "bool" or spec.dtype == torch.bool:
        return (torch.rand(sizes, generator=generator) < 0.5).to(spec.dtype)
    if kind == "zeros":
        return torch.zeros(sizes, dtype=spec.dtype)
    if kind == "ones":
        return torch.ones(sizes, dtype=spec.dtype)
    if kind == "ties":
        return torch.randint(-2, 3, sizes, generator=generator).to(spec.dtype)
    if not spec.dtype.is_floating_point and not spec.dtype.is_complex:
        low = 0 if spec.dtype == torch.uint8 else -9
        return torch.randint(low, 10, sizes, generator=generator).to(spec.dtype)
    if kind == "uniform":
        return torch.rand(sizes, generator=generator).to(spec.dtype)
    if kind == "positive":
        return (torch.rand(sizes, generator=generator) + 0.5).to(spec.dtype)
    if kind == "normal":
        return torch.randn(sizes, generator=generator).to(spec.dtype)
    raise UsageError(f"unknown fill {spec.fill!r}")


def _view_of(base: torch.Tensor, spec: Tensor, dims: Mapping[str, int]) -> torch.Tensor:
    """The first elements of the other input's storage, in this one's shape."""
    sizes = spec.sizes(dims)
    count = torch.Size(sizes).numel()
    return base.reshape(-1)[:count].view(sizes)


# ------------------------------------------------------------------------------------------- the library

HOME = Path(__file__).resolve().parent.parent / "fixtures" / "micrographs"


def load(folder: Path | str = HOME) -> dict[str, type[Micrograph]]:
    """All micrographs of a folder (or of one file), by name."""
    folder = Path(folder)
    files = [folder] if folder.suffix == ".py" else sorted(folder.glob("[!_]*.py"))
    if not files or not folder.exists():
        raise UsageError(f"no micrographs in {folder}: expected Python files with Micrograph classes")
    found: dict[str, type[Micrograph]] = {}
    for file in files:
        module = _import(file)
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Micrograph) and value.__module__ == module.__name__:
                if value.__name__.startswith("_"):
                    continue
                _lint(value, file)
                found[value.name()] = value
    return dict(sorted(found.items()))


def must_run(library: Mapping[str, type[Micrograph]]) -> None:
    """A micrograph that eager cannot run says nothing about a compiler."""
    for name, cls in library.items():
        try:
            cls.build()(*cls.example())
        except Exception as error:
            raise UsageError(f"{name} does not run in eager: {first_line(error)}") from None


def _import(file: Path) -> ModuleType:
    name = f"conformance_micrographs.{file.stem}"
    if (known := sys.modules.get(name)) is not None and getattr(known, "__file__", None) == str(file):
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"{file} does not import: {first_line(error)}") from None
    return module


def _lint(cls: type[Micrograph], file: Path) -> None:
    if not isinstance(getattr(cls, "contract", None), Contract):
        raise UsageError(f"{file}: {cls.__name__} has no contract; add `contract = Contract(...)`")
    for index, spec in enumerate(cls.inputs):
        if not isinstance(spec, (Tensor, Scalar)):
            raise UsageError(f"{file}: input {index} of {cls.__name__} is a {type(spec).__name__}, not a Tensor or Scalar")
        if isinstance(spec, Tensor):
            try:
                spec.sizes(cls.dims)
            except UsageError as error:
                raise UsageError(f"{file}: input {index} of {cls.__name__}: {error}") from None
    unknown_dims = ({*cls.contract.capture.recompiles} | {*cls.contract.capture.dynamic}) - {*cls.dims}
    if unknown_dims:
        raise UsageError(f"{file}: the contract of {cls.__name__} names the dims {sorted(unknown_dims)}; it has {sorted(cls.dims)}")

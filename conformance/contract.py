"""The contract of a micrograph: what must hold at each stage, in words that no backend owns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Capture:
    """graphs      how many graphs are captured, exactly; None: a scenario that says nothing about it, because a compiler may
                capture again in the course of it
    breaks      how many graph breaks there are, exactly; None: any number
    recompiles  how often the compiler captures again when a named dim takes a second and then a third size: `{"s": 1}` means
                once, after which the dim is symbolic; dims left out are not probed
    dynamic     dims marked dynamic before the first call, which then serve every size without a recompile
    unbacked    the same, but the compiler may not look at the size at all, so that 0 and 1 are sizes like any other"""

    graphs: int | None = 1
    breaks: int | None = 0
    recompiles: Mapping[str, int] = field(default_factory=dict)
    dynamic: tuple[str, ...] = ()
    unbacked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decomposition:
    """keeps   ops (`aten.mm`) that must still be in the graph
    absent  ops that must be gone"""

    keeps: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class PostGrad:
    """matches  how often a rewrite is found, by the suite's own words for rewrites (attention, rmsnorm, add_rmsnorm, swiglu,
    linear_bias …), exactly, zero included; a backend that does not know a word is not asked for it"""

    matches: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Fusion:
    """kernels  at most so many generated kernels
    apart    at least so many: what must not fuse
    library  exactly so many calls of library kernels (a matmul, a convolution, an attention)
    temporaries  at most so many buffers that are neither input nor output: a clone of a whole tensor is one
    bytes_moved  at most so many bytes read and written by kernels and library calls, at the declared sizes"""

    kernels: int | None = None
    apart: int | None = None
    library: int | None = None
    temporaries: int | None = None
    bytes_moved: int | None = None


@dataclass(frozen=True)
class Codegen:
    """instructions  what the machine code of a GPU target must contain: `atom`, `rsqrt`
    avoids        text that no generated source may contain: `tl.float64`"""

    instructions: tuple[str, ...] = ()
    avoids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runtime:
    """mutates  inputs written to (None: whatever eager writes to)
    aliases  output index → input index whose storage it shares
    random   draws random numbers, so that only equal seeds can be compared
    raises   the call raises, and the compiled program must raise, too
    Eager must keep to it as well."""

    mutates: tuple[int, ...] | None = None
    aliases: Mapping[int, int] = field(default_factory=dict)
    random: bool = False
    raises: bool = False


@dataclass(frozen=True)
class Cache:
    """cacheable  a second compile of the same graph is a hit
    why        where it is not, the reason"""

    cacheable: bool = True
    why: str = ""


@dataclass(frozen=True)
class Contract:
    """What must hold at each stage."""

    capture: Capture = Capture()
    decomposition: Decomposition = Decomposition()
    postgrad: PostGrad = PostGrad()
    fusion: Fusion = Fusion()
    codegen: Codegen = Codegen()
    runtime: Runtime = Runtime()
    cache: Cache = Cache()

"""CUDA's mathematics library by name, computed by torch on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

Function = Callable[..., torch.Tensor]


def _same(function: Function) -> Function:
    """Takes numbers of one type: scalars follow the tensor."""

    def call(*args: torch.Tensor) -> torch.Tensor:
        dtype = next((a.dtype for a in args if a.is_floating_point()), args[0].dtype)
        return function(*(a.to(dtype) if a.is_floating_point() or not a.dim() else a for a in args))

    return call


def _as_int(function: Function) -> Function:
    return lambda *args: function(*args).to(torch.int32)


# Called alike here and there.
# fmt: off
PLAIN = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "fmax", "fmin", "fmod", "hypot", "ldexp", "lgamma", "log",
    "log10", "log1p", "log2", "nextafter", "pow", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)
# fmt: on
NAMED: dict[str, Function] = {
    "fabs": torch.abs,
    "rint": torch.round,
    "nearbyint": torch.round,
    "tgamma": lambda x: torch.exp(torch.lgamma(x)),
    "isnan": _as_int(torch.isnan),
    "isinf": _as_int(torch.isinf),
    "finitef": _as_int(torch.isfinite),
    "isfinited": _as_int(torch.isfinite),
    "signbit": _as_int(torch.signbit),
    "llrint": lambda x: torch.round(x).to(torch.int64),
    "float2int_rn": lambda x: torch.round(x).to(torch.int32),
    "round": lambda x: torch.sign(x) * torch.floor(torch.abs(x) + 0.5),
    "llround": lambda x: (torch.sign(x) * torch.floor(torch.abs(x) + 0.5)).to(torch.int64),
    "ilogb": lambda x: torch.frexp(x).exponent.to(torch.int32) - 1,
    "exp10": lambda x: _exp10(x),
    "cbrt": lambda x: torch.sign(x) * torch.pow(torch.abs(x), 1.0 / 3.0),
    "rcbrt": lambda x: torch.sign(x) * torch.pow(torch.abs(x), -1.0 / 3.0),
    "cospi": lambda x: torch.cos(x * math.pi),
    "sinpi": lambda x: torch.sin(x * math.pi),
    "fma": lambda x, y, z: (x.double() * y.double() + z.double()).to(x.dtype),
    "fma_rn": lambda x, y, z: (x.double() * y.double() + z.double()).to(x.dtype),
    "add_rn": torch.add,
    "sub_rn": torch.sub,
    "mul_rn": torch.mul,
    "div_rn": torch.div,
    "rcp_rn": torch.reciprocal,
    "sqrt_rn": torch.sqrt,
    "rsqrt_rn": torch.rsqrt,
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1,
    "cyl_bessel_i0": torch.special.i0,
    "cyl_bessel_i1": torch.special.i1,
    "erfcx": torch.special.erfcx,
    "normcdf": torch.special.ndtr,
    "normcdfinv": torch.special.ndtri,
    "fast_expf": torch.exp,
    "fast_exp10f": lambda x: _exp10(x),
    "fast_logf": torch.log,
    "fast_log2f": torch.log2,
    "fast_log10f": torch.log10,
    "fast_powf": torch.pow,
    "fast_sinf": torch.sin,
    "fast_cosf": torch.cos,
    "fast_tanf": torch.tan,
    "fast_tanhf": torch.tanh,
    "fast_dividef": torch.div,
    "popc": lambda x: _popcount(x),
    "mulhi": lambda x, y: ((x.to(torch.int64) * y.to(torch.int64)) >> 32).to(torch.int32),
}


def _exp10(x: torch.Tensor) -> torch.Tensor:
    return torch.pow(torch.full_like(x, 10.0), x)


def _popcount(x: torch.Tensor) -> torch.Tensor:
    wide, count = x.to(torch.int64), torch.zeros(x.shape, dtype=torch.int32)
    for bit in range(x.element_size() * 8):
        count += ((wide >> bit) & 1).to(torch.int32)
    return count


FUNCTIONS: dict[str, Function] = {name: _same(getattr(torch, name)) for name in PLAIN if hasattr(torch, name)}
FUNCTIONS |= {name: _same(function) for name, function in NAMED.items()}
FUNCTIONS |= {"ldexp": torch.ldexp}

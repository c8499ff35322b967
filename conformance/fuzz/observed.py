"""What a program gives, and how two plays of it differ. It needs torch alone: repros carry this text.

A play ends with a value or an exception. Values may be tensors, plain Python values and containers of both.
"""

from __future__ import annotations

from typing import Any

import torch

# Relative and absolute difference that rounding may give, by dtype.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float16: (2e-2, 2e-2),
    torch.bfloat16: (6e-2, 6e-2),
}
ROUGH = (1e-4, 1e-5)  # of every other floating dtype


def outcome(play: Any, compile: Any) -> tuple[str, Any]:
    """Play the program with this `compile`: ("value", what it returned, as plain data), ("raised", what it raised) or
    ("broken", …) where torch no longer computes afterwards."""
    torch.manual_seed(0)
    try:
        ended: tuple[str, Any] = "value", plain(play(compile))
    except Exception as error:
        ended = "raised", _words(error)
    try:
        float((torch.ones(2) + 1).sum())
    except RuntimeError as error:
        return "broken", _words(error)
    return ended


def _words(error: Exception) -> tuple[str, str]:
    """The class of an exception and what it says, in one line; of one that wraps another, what that one says."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    first = " ".join(lines[:2]) if lines and lines[0].endswith("raised:") else "".join(lines[:1])
    return type(error).__name__, first[:300]


def plain(value: Any) -> Any:
    """A copy of a value that later writes do not reach; objects of other classes become the name of their class."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone(), value.requires_grad, tuple(value.stride())
    if isinstance(value, dict):
        return type(value).__name__, [(plain(k), plain(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return type(value).__name__, repr(value)
    return "object", type(value).__name__


def difference(want: tuple[str, Any], got: tuple[str, Any], signs: bool = False) -> tuple[str, str] | None:
    """The first difference of two outcomes, as (what differs, in words); None where there is none. What differs is one
    of breaks, raises, accepts, structure, python, dtype, shape, value, sign of zero, stride, requires_grad."""
    if got[0] == "broken":
        return "breaks", f"after the compiled call torch no longer computes: {got[1][0]}: {got[1][1]}"
    if want[0] == "raised" and got[0] == "raised":
        return None
    if got[0] == "raised":
        return "raises", f"eager returns, compiled raises {got[1][0]}: {got[1][1]}"
    if want[0] == "raised":
        return "accepts", f"eager raises {want[1][0]}: {want[1][1]}; compiled returns"
    found = _values(want[1], got[1], "result", signs)
    return min(found, key=lambda one: ORDER.index(one[0])) if found else None


ORDER = ("structure", "python", "dtype", "shape", "value", "sign of zero", "stride", "requires_grad")


def _values(want: Any, got: Any, where: str, signs: bool) -> list[tuple[str, str]]:
    if isinstance(want[0], torch.Tensor) and isinstance(got[0], torch.Tensor):
        return _tensors(want, got, where, signs)
    if isinstance(want[0], torch.Tensor) or isinstance(got[0], torch.Tensor) or want[0] != got[0]:
        return [("structure", f"{where}: eager {_told(want)}, compiled {_told(got)}")]
    if not isinstance(want[1], list) or not isinstance(got[1], list):
        same = want[1] == got[1] or _close_numbers(want, got)
        return [] if same else [("python", f"{where}: eager {want[1]}, compiled {got[1]}")]
    if len(want[1]) != len(got[1]):
        return [("structure", f"{where}: eager has {len(want[1])} items, compiled {len(got[1])}")]
    if want[0] in ("set", "frozenset"):
        return [] if want[1] == got[1] else [("python", f"{where}: eager {want[1]}, compiled {got[1]}")]
    found = []
    for index, (one, other) in enumerate(zip(want[1], got[1])):  # noqa: B905
        pairs = zip(one, other) if isinstance(one[0], tuple) else [(one, other)]  # noqa: B905
        for a, b in pairs:
            found += _values(a, b, f"{where}[{index}]", signs)
    return found


def _told(value: Any) -> str:
    return f"a tensor {tuple(value[0].shape)}" if isinstance(value[0], torch.Tensor) else str(value)[:100]


def _close_numbers(want: Any, got: Any) -> bool:
    if want[0] != "float":
        return False
    a, b = float(want[1]), float(got[1])
    return a != 0 and abs(a - b) <= 1e-5 * abs(a)


def _tensors(want: Any, got: Any, where: str, signs: bool) -> list[tuple[str, str]]:
    (a, grad_a, stride_a), (b, grad_b, stride_b) = want, got
    if a.dtype != b.dtype:
        return [("dtype", f"{where}: eager {a.dtype}, compiled {b.dtype}")]
    if a.shape != b.shape:
        return [("shape", f"{where}: eager {tuple(a.shape)}, compiled {tuple(b.shape)}")]
    found = []
    if not close(a, b):
        found.append(("value", f"{where}: eager {_numbers(a, b)}, compiled {_numbers(b, a)}"))
    elif signs and a.is_floating_point() and bool(((a == 0) & (a.signbit() != b.signbit())).any()):
        found.append(
            ("sign of zero", f"{where}: eager {a.flatten().tolist()[:8]}, compiled {b.flatten().tolist()[:8]}")
        )
    longer = [i for i, size in enumerate(a.shape) if size > 1] if a.numel() else []
    if [stride_a[i] for i in longer] != [stride_b[i] for i in longer]:
        found.append(("stride", f"{where}: eager {stride_a}, compiled {stride_b} for shape {tuple(a.shape)}"))
    if grad_a != grad_b:
        found.append(("requires_grad", f"{where}: eager {grad_a}, compiled {grad_b}"))
    return found


def close(a: Any, b: Any) -> bool:
    if not a.is_floating_point() and not a.is_complex():
        return torch.equal(a, b)
    relative, absolute = TOLERANCES.get(a.dtype, ROUGH)
    wide = torch.complex128 if a.is_complex() else torch.float64
    numbers = a.to(wide).abs().flatten()
    largest = float(numbers[numbers.isfinite()].max()) if bool(numbers.isfinite().any()) else 0.0
    absolute *= max(1.0, largest)  # where large numbers cancel, what is left has their error
    return torch.allclose(b.to(wide), a.to(wide), rtol=relative, atol=absolute, equal_nan=True)


def _numbers(tensor: Any, other: Any) -> list[Any]:
    """The elements that differ, or the first few."""
    wide = tensor.to(torch.complex128) if tensor.is_complex() else tensor.to(torch.float64)
    beside = other.to(wide.dtype)
    odd = ~torch.isclose(wide, beside, equal_nan=True)
    return list(wide[odd].flatten().tolist()[:6])

"""Custom ops, with annotations that are right, for programs that call them."""

from __future__ import annotations

OPS = {
    "bump": """
@torch.library.custom_op(unique("bump"), mutates_args=("t",))
def bump(t: torch.Tensor) -> None:
    t.add_(1)
""",
    "swap_into": """
@torch.library.custom_op(unique("swap_into"), mutates_args=("a", "b"))
def swap_into(a: torch.Tensor, b: torch.Tensor) -> None:
    kept = a.clone()
    a.copy_(b)
    b.copy_(kept)
""",
    "flip_into": """
@torch.library.custom_op(unique("flip_into"), mutates_args=("into",))
def flip_into(source: torch.Tensor, into: torch.Tensor) -> None:
    for i in range(len(source)):
        into[len(source) - 1 - i] = source[i]
""",
    "bump_both": """
@torch.library.custom_op(unique("bump_both"), mutates_args=("a", "b"))
def bump_both(a: torch.Tensor, b: torch.Tensor) -> None:
    a.add_(1)
    b.mul_(2)
""",
    "bump_all": """
@torch.library.custom_op(unique("bump_all"), mutates_args=("ts",))
def bump_all(ts: list[torch.Tensor]) -> None:
    for k, t in enumerate(ts):
        t.add_(k + 1)
""",
    "strided": """
@torch.library.custom_op(unique("strided"), mutates_args=())
def strided(t: torch.Tensor) -> torch.Tensor:
    return t.t().contiguous().t() * 2

@strided.register_fake
def _(t):
    return t.t().contiguous().t() * 2
""",
    "double": """
@torch.library.custom_op(unique("double"), mutates_args=())
def double(t: torch.Tensor) -> torch.Tensor:
    return t * 2

@double.register_fake
def _(t):
    return torch.empty_like(t)
""",
    "maybe": """
@torch.library.custom_op(unique("maybe"), mutates_args=("a", "b"))
def maybe(a: torch.Tensor, b: torch.Tensor | None) -> None:
    a.add_(1)
    if b is not None:
        b.add_(a)
""",
}

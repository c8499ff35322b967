"""A custom op with one result, whose written argument is None (or an empty list), cannot be compiled: "AssertionError: <built-in function
getitem> is not an OpOverload". With two results, or with something to write to, it can. See pytorch#197376."""

import torch


@torch.library.custom_op("repro::maybe_add", mutates_args=("total",))
def maybe_add(total: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor:
    if total is not None:
        total.add_(x)
    return x + 1


@maybe_add.register_fake
def _(total, x):
    return torch.empty_like(x)


@torch.library.custom_op("repro::add_to_all", mutates_args=("totals",))
def add_to_all(totals: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    for total in totals:
        total.add_(x)
    return x + 1


@add_to_all.register_fake
def _(totals, x):
    return torch.empty_like(x)


found = []
for name, call in {"None": lambda x: maybe_add(None, x), "empty list": lambda x: add_to_all([], x)}.items():
    torch._dynamo.reset()
    try:
        torch.compile(call)(torch.ones(3))
    except Exception as error:
        found.append(f"{name}: {str(error).splitlines()[0]}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))

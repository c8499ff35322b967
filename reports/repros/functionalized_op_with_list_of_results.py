"""A custom op that writes to an argument and gives a list of tensors cannot be compiled: "Found a custom (non-ATen) operator whose output
has alias annotations", although its outputs have none. It is no graph break: the whole program fails. See pytorch#144072."""

import torch


@torch.library.custom_op("repro::add_and_list", mutates_args=("total",))
def add_and_list(total: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
    total.add_(x)
    return [x + 1, x + 2]


@add_and_list.register_fake
def _(total, x):
    return [torch.empty_like(x), torch.empty_like(x)]


try:
    torch.compile(lambda total, x: add_and_list(total, x), backend="aot_eager")(torch.ones(3), torch.ones(3))
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: {' '.join(str(error).split())[:120]}") from None

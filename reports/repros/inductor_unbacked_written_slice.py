"""A custom op gives an unknown number of rows; the first of them is set to zero in place: "shape error in scatter op"."""

import sys

import torch


@torch.library.custom_op("repro::rows", mutates_args=())
def rows(x: torch.Tensor) -> torch.Tensor:
    return x[2:].clone()


@rows.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.shape[1])


def f(x):
    y = rows(x)
    y[:1].zero_()
    return y


x = torch.randn(6, 4)
try:
    assert torch.equal(torch.compile(f, fullgraph=True)(x), f(x))
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
    sys.exit(1)

"""pytorch#186807: a custom op that writes its argument inside a nested compile region."""

import torch


@torch.library.custom_op("corpus186807::add_into", mutates_args=("d",))
def add_into(d: torch.Tensor, x: torch.Tensor) -> None:
    d.add_(x)


@torch.compiler.nested_compile_region
def inner(d, x):
    add_into(d, x)
    return d + 1


def f(d, x):
    return inner(d, x)


a, b = torch.zeros(3), torch.zeros(3)
want, got = f(a, torch.ones(3)), torch.compile(f)(b, torch.ones(3))
torch.testing.assert_close(got, want)
torch.testing.assert_close(b, a)

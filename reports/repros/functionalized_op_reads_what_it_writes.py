"""A custom op that writes to one argument and reads another gives a wrong result when both are the same tensor, or views of one: it reads
the values from before its own write, because the written argument is cloned and the read one is not. No error. See pytorch#198031."""

import torch


@torch.library.custom_op("repro::raise_and_double", mutates_args=("written",))
def raise_and_double(written: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
    written.add_(1)
    return read * 2


@raise_and_double.register_fake
def _(written, read):
    return torch.empty_like(read)


def same(x):
    y = x * 2
    return raise_and_double(y, y)


def part(x):
    y = x * 2
    return raise_and_double(y[1:], y)


def constant(x):
    y = torch.zeros(3)
    return raise_and_double(y, y) + x


found = []
for call in (same, part, constant):
    torch._dynamo.reset()
    x = torch.arange(3.0)
    if not torch.equal(call(x), torch.compile(call)(x)):
        found.append(call.__name__)
if found:
    raise SystemExit(f"torch {torch.__version__}: the op does not see what it wrote: " + ", ".join(found))

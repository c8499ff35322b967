"""A context, a descriptor or a bound operator that the program is given is replaced by another one of its kind: there is no guard on which it
is, and the program of the first is used. No error."""

import contextlib

import torch


def context(x, held):
    with held as given:
        return x * 2 if given is None else x * given


def descriptor(x, held):
    return x * 2, held.__get__(x)


def bound(x, held):
    return x * 2, held(x)


def operator(x, held):
    return x * held(2)


of = torch.Tensor
kinds = {
    "nullcontext": (context, (contextlib.nullcontext(), contextlib.nullcontext(5))),
    "descriptor": (descriptor, (of.is_leaf, of.requires_grad)),
    "bound descriptor": (bound, (of.is_leaf.__get__, of.requires_grad.__get__)),
    "bound operator": (operator, ((5).__add__, (5).__mul__)),
    "method of a class": (bound, (of.sin, of.cos)),
}
wrong = []
for kind, (program, objects) in kinds.items():
    torch._dynamo.reset()
    compiled, x = torch.compile(program, backend="eager"), torch.arange(3.0)
    if any(repr(compiled(x, held)) != repr(program(x, held)) for held in objects):
        wrong.append(kind)
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")

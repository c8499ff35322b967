"""An argument is a bound method, a method of a class or a descriptor, and in the next call None: `held is None`, `if held` and `callable(held)`
keep the answer of the first call. No error."""

import torch


def is_none(x, held):
    return x * 2 if held is None else x * 3


def is_true(x, held):
    return x * 3 if held else x * 2


def is_callable(x, held):
    return x * 3 if callable(held) else x * 2


class Slotted:
    __slots__ = ("number",)


kinds = {
    "method of a tensor": torch.ones(3).add,
    "operator of a number": (5).__add__,
    "method of class Tensor": torch.Tensor.relu,
    "method of class str": str.join,
    "operator of class int": int.__add__,
    "descriptor of class Tensor": torch.Tensor.is_leaf,
    "descriptor of a slot": Slotted.number,
}
wrong = []
for kind, held in kinds.items():
    for program in (is_none, is_true, is_callable):
        torch._dynamo.reset()
        compiled, x = torch.compile(program, backend="eager"), torch.ones(2)
        if any(not torch.equal(compiled(x, given), program(x, given)) for given in (held, None)):
            wrong.append(f"{kind} ({program.__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")

"""The program sets an attribute of a wrapper (its scale, or the tensor inside) and computes with the wrapper: the old one is used.

torch 2.11.0 and 2.15.0: wrong, backend="eager" too. No report names it. (Dynamo sets the attribute after the graph has run.)
"""

import torch


class Scaled(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, scale):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner, scale):
        self.inner, self.scale = inner, scale

    def __repr__(self):
        return f"Scaled({self.inner}, {self.scale})"

    def __tensor_flatten__(self):
        return ["inner"], self.scale

    @staticmethod
    def __tensor_unflatten__(inners, scale, size, stride):
        return Scaled(inners["inner"], scale)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [a.inner * a.scale if isinstance(a, Scaled) else a for a in args]
        return func(*args, **(kwargs or {}))


def scale_is_set(x):
    x.scale = 5.0
    return x + 1


def inside_is_set(x):
    x.inner = x.inner + 10
    return x + 1


wrong = 0
for program in (scale_is_set, inside_is_set):
    want = program(Scaled(torch.ones(2), 2.0))
    for backend in ("eager", "aot_eager", "inductor"):
        torch._dynamo.reset()
        got = torch.compile(program, backend=backend)(Scaled(torch.ones(2), 2.0))
        print(program.__name__, backend, got, "eager gives", want)
        wrong += not torch.equal(got, want)
assert not wrong

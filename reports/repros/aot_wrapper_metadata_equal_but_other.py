"""What `__tensor_flatten__` gives beside the tensors is guarded by ==: 2 and 2.0, 1 and True, 0.0 and -0.0 are the same to it, and NaN never is.

torch 2.11.0 and 2.15.0: the second call uses the first one's program: another dtype, another sign; a NaN raises
"Guard failed on the same frame it was created".
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


def doubled(x):
    return x * 2


def inverse(x):
    return 1 / x


wrong = 0
for program, inner, scales in (
    (doubled, torch.arange(3), (2, 2.0)),
    (inverse, torch.ones(2), (0.0, -0.0)),
    (doubled, torch.ones(2), (float("nan"),)),
):
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="aot_eager")
    for scale in scales:
        want = program(Scaled(inner, scale))
        try:
            got = compiled(Scaled(inner, scale))
        except Exception as error:
            got = str(error).splitlines()[0][:80]
        print(program.__name__, scale, got, "eager gives", want)
        wrong += repr(got) != repr(want)
assert not wrong

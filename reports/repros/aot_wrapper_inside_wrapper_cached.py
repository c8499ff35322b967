"""Two programs differ only in the class of the wrapper inside the wrapper: the second one is given the first one's entry of the cache,
and its results have the wrong class inside.

inductor with its caches (the default); right with TORCHINDUCTOR_FORCE_DISABLE_CACHES=1, right with aot_eager."""

import torch
from torch._inductor.utils import fresh_inductor_cache
from torch.utils import _pytree as pytree


class Outer(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"{type(self).__name__}({self.inner})"

    def __tensor_flatten__(self):
        return ["inner"], None

    @classmethod
    def __tensor_unflatten__(cls, inners, notes, size, stride):
        return cls(inners["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(cls, lambda x: x.inner, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, cls, func(*args, **kwargs))


class Metres(Outer):
    pass


class Feet(Outer):
    pass


with fresh_inductor_cache():
    compiled = torch.compile(lambda x: x * 2)
    compiled(Outer(Metres(torch.ones(2))))
    got = compiled(Outer(Feet(torch.ones(2))))
print("compiled", got)
assert type(got.inner) is Feet

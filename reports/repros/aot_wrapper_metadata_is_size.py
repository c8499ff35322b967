"""Notes of a wrapper that hold a size: with dynamic sizes the result's note is a SymInt of the compiler (`s77`), not the number.

torch 2.11.0 and 2.15.0.
"""

import torch
from torch.utils import _pytree as pytree


class Sized(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, rows):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device
        )

    def __init__(self, inner, rows):
        self.inner, self.rows = inner, rows

    def __repr__(self):
        return f"Sized({self.inner}, {self.rows})"

    def __tensor_flatten__(self):
        return ["inner"], self.rows

    @staticmethod
    def __tensor_unflatten__(inners, rows, size, stride):
        return Sized(inners["inner"], rows)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(Sized, lambda x: x.inner, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, lambda x: cls(x, x.shape[0]), func(*args, **kwargs))


compiled = torch.compile(lambda x: x * 2, backend="aot_eager", dynamic=True)
notes = []
for rows in (3, 5):
    x = torch.ones(rows, 2)
    notes.append(compiled(Sized(x, rows)).rows)
    print(rows, repr(notes[-1]), type(notes[-1]))
assert all(type(note) is int for note in notes) and notes == [3, 5]

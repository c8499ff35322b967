"""torch 2.11, dynamic=True: the strides of a tensor that wraps another one follow its number of rows, not of columns."""

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing


class Wrapper(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner, size=None, stride=None):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape if size is None else size, strides=stride or inner.stride(), dtype=inner.dtype
        )

    def __init__(self, inner, size=None, stride=None):
        self.inner = inner

    def __repr__(self):
        return f"Wrapper({self.inner})"

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inners, notes, size, stride):
        return Wrapper(inners["inner"], size, stride)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        bare = pytree.tree_map_only(Wrapper, lambda value: value.inner, (args, kwargs or {}))
        result = pytree.tree_map_only(torch.Tensor, Wrapper, func(*bare[0], **bare[1]))
        return return_and_correct_aliasing(func, args, kwargs or {}, result)


compiled = torch.compile(lambda x: x * 2, dynamic=True)
for rows in (4, 6, 8):
    made = compiled(Wrapper(torch.ones(rows, 4)))
    if made.stride() != (4, 1):
        raise SystemExit(f"torch {torch.__version__}: strides {made.stride()} for {rows} rows of 4")

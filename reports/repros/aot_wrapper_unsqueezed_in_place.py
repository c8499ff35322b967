"""unsqueeze_ of a wrapper of one tensor inside the program: IndexError while guards are made (2.11.0, 2.15.0). A plain tensor works."""

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inners, notes, size, stride):
        return Wrapper(inners["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        bare = pytree.tree_map_only(Wrapper, lambda value: value.inner, (args, kwargs))
        result = pytree.tree_map_only(torch.Tensor, Wrapper, func(*bare[0], **bare[1]))
        return return_and_correct_aliasing(func, args, kwargs, result)


def program(x):
    x.unsqueeze_(0)
    return x * 2


print(program(Wrapper(torch.ones(2, 3))).shape)
print(torch.compile(program, backend="eager")(Wrapper(torch.ones(2, 3))).shape)

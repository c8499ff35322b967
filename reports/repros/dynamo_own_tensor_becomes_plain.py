"""A `__torch_function__` that gives plain tensors: eager returns them, compiled the call ends in an AssertionError."""

import torch


class GivesPlain(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result.as_subclass(torch.Tensor) if isinstance(result, torch.Tensor) else result


def program(x, y):
    z = x + y
    return z, z * 2, x.sin()


def inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 3).as_subclass(GivesPlain) for _ in range(2)]


assert [type(one) for one in program(*inputs())] == [torch.Tensor] * 3
try:
    torch.compile(program)(*inputs())
except Exception as error:
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    raise SystemExit(f"torch {torch.__version__}: eager gives plain tensors, compiled {said}") from None

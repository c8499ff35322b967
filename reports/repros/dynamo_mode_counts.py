"""A TorchFunctionMode that appends to a list of its own, on around a compiled call: AssertionError, guard failed on the same frame it was
created. One that doubles results doubles them more than once. See pytorch#115741."""

import torch
from torch.overrides import TorchFunctionMode


class Counts(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Doubles(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if isinstance(result, torch.Tensor) else result


found = []
x = torch.ones(4)
for mode in (Counts(), Doubles()):
    torch._dynamo.reset()
    call = torch.compile(torch.nn.Sigmoid(), backend="aot_eager")
    try:
        with mode:
            given = call(x)
            right = torch.sigmoid(x)
        if not torch.allclose(given, right):
            found.append(f"{type(mode).__name__}: {given[0]:.3f}, not {right[0]:.3f}")
    except Exception as error:
        found.append(f"{type(mode).__name__}: {type(error).__name__}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + ", ".join(found))

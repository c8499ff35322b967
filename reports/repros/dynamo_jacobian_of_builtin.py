"""torch.autograd.functional.jacobian(torch.sin, x) inside a program: InternalTorchDynamoError, argument of type
builtin_function_or_method. With vectorize=True (inductor): Cannot access data pointer of Tensor that doesn't have storage."""

import torch
from torch.autograd.functional import jacobian


def builtin(x):
    return jacobian(torch.sin, x)


def vectorized(x):
    return jacobian(lambda y: y.sin() * y, x, vectorize=True)


found = []
for call in (builtin, vectorized):
    torch._dynamo.reset()
    x = torch.arange(1.0, 4.0)
    try:
        if not torch.allclose(torch.compile(call)(x), call(x)):
            found.append(f"{call.__name__} is wrong")
    except Exception as error:
        found.append(f"{call.__name__}: {type(error).__name__}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + ", ".join(found))

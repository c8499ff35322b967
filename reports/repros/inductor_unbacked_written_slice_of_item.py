"""An input that is written up to an item, twice, does not compile: "shape error in scatter op" (2.11.0)."""

import torch

torch._dynamo.config.capture_scalar_outputs = True


def f(x, number):
    count = number.item()
    x[:, :count] = 0.25
    x[:count].mul_(2.0)
    return x.sum()


x, number = torch.randn(6, 8), torch.tensor(3)
try:
    torch.compile(f)(x.clone(), number)
except Exception as error:
    raise SystemExit(f"{type(error).__name__}: {' '.join(str(error).split())[:150]}") from None

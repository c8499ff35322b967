"""`x % inf` is x in eager (as in Python, where the signs agree) and NaN in the CPU kernels of torch.compile, in every float dtype."""

import torch

found = []
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    torch._dynamo.reset()
    x = torch.tensor([1.0, 5.5, 2.0, 7.0] * 4, dtype=dtype)
    y = torch.full_like(x, float("inf"))

    def remainder(x, y):
        return x % y

    if not torch.equal(remainder(x, y), torch.compile(remainder)(x, y)):
        found.append(str(dtype))
if found:
    raise SystemExit(f"torch {torch.__version__}: x % inf is not x: " + ", ".join(found))

"""With capture_scalar_outputs, `torch.full((2,), n)` of an int64 or bool tensor n is float32; in eager it has n's dtype. Next of kin: pytorch#151980."""

import torch
import torch._dynamo

found = []
with torch._dynamo.config.patch(capture_scalar_outputs=True):
    for number in (torch.tensor(3), torch.tensor(True)):
        torch._dynamo.reset()

        def full(n):
            return torch.full((2,), n)

        want, got = full(number), torch.compile(full, backend="eager")(number)
        if want.dtype != got.dtype:
            found.append(f"{want.dtype} became {got.dtype}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + ", ".join(found))

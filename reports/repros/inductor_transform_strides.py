"""rfft over a middle dim, or of a transposed tensor: the compiled program asserts other strides than the library gives. Neighbours of
pytorch#167636."""

import torch

failed = []
for name, call, x in (
    ("middle dim", lambda x: torch.fft.rfft(x, dim=1) * 2, torch.randn(3, 5, 7)),
    ("transposed", lambda x: torch.fft.rfft(x.t(), dim=0) * 2, torch.randn(6, 4)),
):
    try:
        result = torch.compile(call)(x)
    except AssertionError as error:
        failed.append(f"{name}: {str(error).splitlines()[0]}")
        continue
    if not torch.allclose(result, call(x), atol=1e-4):
        failed.append(f"{name}: other values")
if failed:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(failed)}")

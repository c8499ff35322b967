"""grid_sample at a coordinate that is NaN or infinite: NaN in eager on the CPU, 0 or a pixel when compiled."""

import torch
from torch.nn import functional as F

x, nan = torch.ones(1, 1, 3, 4), float("nan")
wrong = []
for padding in ("zeros", "border"):
    torch.compiler.reset()
    grid = torch.tensor([[[[0.0, 0.0], [nan, 0.0]], [[0.25, nan], [0.5, 0.5]]]])

    def program(x, grid, padding=padding):
        return F.grid_sample(x, grid, padding_mode=padding, align_corners=False)

    if not torch.equal(torch.compile(program)(x, grid).isnan(), program(x, grid).isnan()):
        wrong.append(padding)
if wrong:
    raise SystemExit(f"torch {torch.__version__}: NaN is lost: padding {', '.join(wrong)}")

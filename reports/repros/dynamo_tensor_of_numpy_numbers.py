"""torch.Tensor of NumPy's numbers, and torch.as_tensor and new_tensor of tensors without dims: "Dynamo failed to run FX node with fake tensors".
pytorch#129648."""

import numpy as np
import torch

programs = {
    "torch.Tensor of NumPy's numbers": lambda x: torch.Tensor([[np.cos(0.5), np.sin(0.5)], [0.0, 1.0]]),
    "torch.Tensor of tensors": lambda x: torch.Tensor([x[0], x[1], 3.0]),
    "torch.as_tensor of tensors": lambda x: torch.as_tensor([x[0], x[1]]),
    "new_tensor of tensors": lambda x: x.new_tensor([1, x[0], 2.5]),
}
wrong = []
for name, program in programs.items():
    torch._dynamo.reset()
    x = torch.ones(3)
    try:
        if not torch.equal(torch.compile(program, backend="eager")(x), program(x)):
            wrong.append(f"{name}: other numbers")
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

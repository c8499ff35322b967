"""What an optimizer refuses (sparse gradients, complex parameters) is a RuntimeError in eager. A compiled step gives an
InternalTorchDynamoError, as if the compiler had a defect, and other words."""

import torch

parameter = torch.nn.Parameter(torch.ones(3))
parameter.grad = torch.ones(3).to_sparse()
step = torch.compile(torch.optim.Adam([parameter]).step, backend="eager")
try:
    step()
except Exception as error:
    if type(error).__name__ == "InternalTorchDynamoError":
        raise SystemExit(f"torch {torch.__version__}: {type(error).__name__}: {str(error).splitlines()[0]}") from None

"""The gradient of a real tensor that is multiplied by a complex number of Python's: the compiler raises. Neighbours of pytorch#184100."""

import torch

failed = []
for name, call in {"times": lambda x: torch.view_as_real(x * 1j), "divided": lambda x: torch.view_as_real(x / 2j)}.items():
    x = torch.ones(4, requires_grad=True)
    try:
        torch.compile(call)(x).sum().backward()
    except Exception as error:
        failed.append(f"{name}: {type(error).__name__}")
if failed:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(failed)}")

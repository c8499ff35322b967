"""With capture_scalar_outputs, x[i] of an integer that the program computed is an internal error. (2.11 breaks the graph, and is right.)"""

import torch

torch._dynamo.config.capture_scalar_outputs = True


def program(x):
    return x[x.argmax()] * 2


x = torch.tensor([3.0, 1.0, 5.0])
try:
    made = torch.compile(program, backend="eager")(x)
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: {type(error).__name__}: {str(error)[:120]}") from None
if made.item() != 10.0:
    raise SystemExit(f"torch {torch.__version__}: {made.item()}")

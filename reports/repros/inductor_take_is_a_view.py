"""With capture_scalar_outputs, take of one place is a view of the input: a write to the result reaches the input. (2.11 does not compile it.)"""

import torch

torch._dynamo.config.capture_scalar_outputs = True


def program(x):
    return x.take(x.argmax())


x = torch.tensor([3.0, 1.0, 5.0])
torch.compile(program)(x).zero_()
if x.tolist() != [3.0, 1.0, 5.0]:
    raise SystemExit(f"torch {torch.__version__}: the input is {x.tolist()} after a write to the result")

"""_foreach ops on complex tensors do not compile (`<built-in function getitem> is not an OpOverload`). Neighbours of pytorch#197376."""

import torch

CALLS = {
    "added number": lambda x, y: torch._foreach_add_([x, y], 1j),
    "times itself": lambda x, y: torch._foreach_mul_([x, y], [x, y]),
}

found = []
for name, call in CALLS.items():
    torch._dynamo.reset()
    x, y = torch.ones(2, dtype=torch.complex64), torch.ones(3, dtype=torch.complex64)
    try:
        torch.compile(lambda x, y, call=call: (call(x, y), x.sum())[1])(x, y)
    except Exception as error:
        found.append(f"{name}: {type(error).__name__}")
if found:
    raise SystemExit(f"torch {torch.__version__}: eager runs them, compiled: " + "; ".join(found))

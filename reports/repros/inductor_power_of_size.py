"""Powers with a size in them do not compile, and the root of minus infinity in half precision is NaN. See pytorch#197894."""

import torch

x = torch.ones(5, 3)
CALLS = {
    "2 ** size": (lambda x: x * 2 ** x.shape[0] + 3 ** (x.shape[0] - 1), x),
    "size ** size": (lambda x: x * x.shape[0] ** x.shape[1], x),
    "(-2) ** size": (lambda x: x * (-2) ** x.shape[0], x),
    "root of halves": (lambda x: x**0.5, torch.tensor([-float("inf"), 4.0]).half()),
}

found = []
for name, (call, given) in CALLS.items():
    torch._dynamo.reset()
    try:
        got = torch.compile(call, dynamic=True)(given)
    except Exception as error:
        found.append(f"{name}: {type(error).__name__}")
        continue
    if not torch.allclose(got, call(given), equal_nan=True):
        found.append(f"{name}: {got.tolist()}, eager {call(given).tolist()}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))

"""while_loop and scan refuse one tensor (or a tensor and a view of it) that is given twice: "might be aliasing the input or the output",
although neither condition nor body returns or writes to what it is given. Neighbours of pytorch#191582."""

import torch
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.scan import scan

i, x, rows = torch.tensor(0), torch.randn(3), torch.randn(4, 3)
CALLS = {
    "two states": lambda i, x, rows: while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a + b, b * 2), (i, x, x)
    ),
    "a view": lambda i, x, rows: while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * 2, b + 1), (i, x, x[0])),
    "scan": lambda i, x, rows: scan(lambda state, row: (state + row + x, state * row), x, rows),
}
found = []
for name, call in CALLS.items():
    torch._dynamo.reset()
    call(i, x, rows)
    torch._dynamo.reset()
    try:
        torch.compile(call, fullgraph=True)(i, x, rows)
    except Exception as error:
        found.append(f"{name}: {[line for line in str(error).splitlines() if 'alias' in line][:1]}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))

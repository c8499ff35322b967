"""map (and scan, pytorch#153437) cannot be compiled unless fullgraph=True is given: the loop that they become asks for the value of its
counter, "DataDependentOutputException: aten._local_scalar_dense.default"."""

import torch

try:
    from torch._higher_order_ops.map import map as map_rows
except ImportError:
    raise SystemExit(2) from None


def rows(x, y):
    return map_rows(lambda row, y: (row.sin() + y, row.sum()), x, y)


x, y = torch.randn(4, 3), torch.randn(3)
torch.compile(rows, fullgraph=True)(x, y)
torch._dynamo.reset()
try:
    torch.compile(rows)(x, y)
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: {str(error).splitlines()[0]}") from None

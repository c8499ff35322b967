"""avg_pool2d, crash: a padding of one number, (1,), is accepted without gradients; with them its lowering asserts that there are two.

Found by `conformance ops` (form grad).
Exits 1 while the defect is there, 0 once it is gone.
"""

import sys

import torch

x = torch.ones(2, 3, 9, 9, requires_grad=True)
try:
    torch.compile(lambda x: torch.nn.functional.avg_pool2d(x, 3, 1, (1,)))(x).sum().backward()
except Exception as error:
    print(f"torch {torch.__version__}: {str(error).splitlines()[0]}")
    sys.exit(1)

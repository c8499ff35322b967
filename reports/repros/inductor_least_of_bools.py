"""min of a mask that is computed, 6 by 10 bools: the C++ that Inductor writes does not compile."""

import torch

x = torch.arange(60).reshape(6, 10) % 7 == 3
try:
    least = torch.compile(lambda x: (x ^ x.flip(0)).min())(x)
except Exception as error:
    raise SystemExit(f"torch {torch.__version__}: {str(error).splitlines()[0]}") from None
if least.item():
    raise SystemExit(f"torch {torch.__version__}: True, eager gives False")

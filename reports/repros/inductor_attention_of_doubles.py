"""scaled_dot_product_attention in float64: the compiled backward fails, "expected scalar type Double but found Float". See pytorch#185539."""

import torch
from torch.nn import functional as F

x = torch.randn(1, 2, 4, 8, dtype=torch.float64, requires_grad=True)
for causal in (True, False):
    torch._dynamo.reset()
    try:
        torch.compile(lambda x, causal=causal: F.scaled_dot_product_attention(x, x, x, is_causal=causal))(
            x
        ).sum().backward()
    except RuntimeError as error:
        raise SystemExit(f"torch {torch.__version__}: {error}") from None

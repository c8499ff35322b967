"""A norm with weights over rolled windows, and a norm, attention and a product: not compiled (2.11)."""

import torch
from torch.nn import functional as F

norm = torch.nn.LayerNorm(2)


def rolled(x):
    return torch.relu(norm(torch.roll(x.unfold(1, 2, 1), 1, 2)))


def attended(x):
    y = F.layer_norm(x, (7,))
    return torch.bmm(F.scaled_dot_product_attention(y, y, y), y)


wrong = []
for program, shape in ((rolled, (2, 6)), (attended, (8, 7, 7))):
    torch.compiler.reset()
    x = torch.randn(shape)
    with torch.no_grad():
        try:
            torch.testing.assert_close(torch.compile(program)(x), program(x))
        except Exception as error:
            wrong.append(f"{program.__name__}: {type(error).__name__}: {str(error)[:60]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

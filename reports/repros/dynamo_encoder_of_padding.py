"""nn.TransformerEncoder outside of training refuses a batch of which every place is padding; compiled, it gives numbers. See
pytorch#178677."""

import torch
from torch import nn

encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1).eval()
x, padding = torch.randn(2, 3, 8), torch.ones(2, 3, dtype=torch.bool)


def refuses(call) -> bool:
    try:
        with torch.no_grad():
            call(x, src_key_padding_mask=padding)
    except RuntimeError:
        return True
    return False


if refuses(encoder) and not refuses(torch.compile(encoder)):
    raise SystemExit(f"torch {torch.__version__}: eager refuses, the compiled call does not")

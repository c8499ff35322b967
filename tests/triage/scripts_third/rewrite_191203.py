"""pytorch#191203: attention by hand whose scale is a tensor: the scale is lost, or the rewrite raises."""

import torch
import torch.nn.functional as F


def attention(q, k, v, mask, scale):
    return F.softmax(q @ k.transpose(-2, -1) / scale + mask, dim=-1) @ v


torch.manual_seed(0)
q, k, v = (torch.randn(2, 3, 5, 16) for _ in range(3))
mask, scale = torch.zeros(2, 1, 5, 5), torch.tensor(1.5)
want = attention(q, k, v, mask, scale)
got = torch.compile(attention)(q, k, v, mask, scale)
assert torch.allclose(want, got, atol=1e-4), (want - got).abs().max()

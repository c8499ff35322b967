import torch

net = torch.nn.Linear(8, 8)
c = torch.compile(net)
x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
plain = c(x)
with torch.no_grad():
    assert not c(x).requires_grad
with torch.autocast("cpu", dtype=torch.bfloat16):
    low = c(x)
assert low.dtype is torch.bfloat16 and plain.dtype is torch.float32 and c(x).requires_grad
torch.testing.assert_close(low.float(), plain, rtol=3e-2, atol=3e-2)

"""pytorch#197893: neighbour: x + zeros returns the input itself."""

import sys

import torch


class Residual(torch.nn.Module):
    def forward(self, x):
        return x + torch.zeros(x.shape)


m = Residual()
x = torch.ones(4)
with torch.no_grad():
    out = torch.compile(m)(x)
print("output shares the input's storage:", out.data_ptr() == x.data_ptr(), "| eager:", m(x).data_ptr() == x.data_ptr())
sys.exit(out.data_ptr() == x.data_ptr())

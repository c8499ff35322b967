"""The same with unbind: compiled, the rows are no views of their base."""

import sys

import torch


class Rows(torch.nn.Module):
    def forward(self, x):
        x += 1
        return x.unbind(0)


m = Rows()
ptr = []
for fn in (m, torch.compile(m)):
    x = torch.zeros(2, 3, requires_grad=True) * 1
    rows = fn(x)
    ptr.append(rows[1].data_ptr() - x.data_ptr())
print("offset of row 1 from its base, in bytes:", ptr)
sys.exit(ptr[0] != ptr[1])

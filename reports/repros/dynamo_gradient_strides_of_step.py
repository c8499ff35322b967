"""The compiled step of an optimizer; in the next call a gradient has other strides, or the parameter's data has: nothing is compiled again, and
the program of the first call stops at its own assertion (`expected size 4==4, stride 1==3`)."""

import torch
from torch import nn

parameter = nn.Parameter(torch.ones(4, 3))
optimizer = torch.optim.Adam([parameter], lr=0.1)
step = torch.compile(optimizer.step)
for turn in range(2):
    gradient = torch.ones(4, 3)
    parameter.grad = gradient.t().contiguous().t() if turn else gradient
    step()

"""pytorch#169253: a list of a class is appended to in forward."""

import sys

import torch


class Model(torch.nn.Module):
    seen = []

    def forward(self, x):
        Model.seen.append(x.shape[0])
        return x + 1


m = Model()
m(torch.ones(2)), m(torch.ones(2))
want = list(Model.seen)
Model.seen.clear()
c = torch.compile(m)
c(torch.ones(2)), c(torch.ones(2))
print("eager", want, "compiled", Model.seen)
sys.exit(want != Model.seen)

"""pytorch#193263: cumsum of a constant without dims: the graph pass raises."""

import torch


@torch.compile
def f(x):
    return x + torch.tensor(5.0).cumsum(0)


assert f(torch.ones(3)).tolist() == [6.0, 6.0, 6.0]

"""torch.IntTensor of a torch.Size makes a tensor of that size; compiled, one that holds the numbers."""

import torch


def f(x):
    return torch.IntTensor(x.size()).zero_()


x = torch.ones(2, 3)
want, got = f(x).shape, torch.compile(f)(x).shape
raise SystemExit(f"{tuple(got)}, eager has {tuple(want)}" if want != got else 0)

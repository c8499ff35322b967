"""A lazy layer whose weights are drawn while it is compiled: the generator is put back, and the next draw repeats the numbers of the
weights. No error."""

import torch


def draws(compiled):
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.LazyLinear(2, bias=False))
    (torch.compile(layer, backend="eager") if compiled else layer)(torch.ones(1, 3))
    return torch.rand(1).item()


if draws(True) != draws(False):
    raise SystemExit(f"torch {torch.__version__}: the next draw is {draws(True)} and not {draws(False)}")

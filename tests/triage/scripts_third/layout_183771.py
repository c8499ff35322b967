"""pytorch#183771: interpolation of a channels-last volume loses the layout."""

import torch
import torch.nn.functional as F


def f(x):
    return F.interpolate(x, size=(5, 6, 7), mode="nearest")


x = torch.randn(2, 2, 5, 2, 3).to(memory_format=torch.channels_last_3d)
assert f(x).stride() == torch.compile(f)(x).stride(), (f(x).stride(), torch.compile(f)(x).stride())

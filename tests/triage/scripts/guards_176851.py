"""pytorch#176851: an attribute of a plain class is changed between two calls."""

import torch


class Settings:
    gain = 1.0


def f(x):
    return x * Settings.gain


c = torch.compile(f)
x = torch.tensor([4.0])
c(x)
Settings.gain = 10.0
assert torch.equal(c(x), f(x)), f"class attribute changed: eager {f(x).item()}, compiled {c(x).item()}"

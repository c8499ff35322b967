"""An attribute that __getattr__ answered is set on the object after the first call: the compiled function goes on
with the old answer. Needs torch alone; exits 1 while it is so."""

import sys

import torch


class Lazy:
    def __getattr__(self, name):
        if name == "gain":
            return 2.0
        raise AttributeError(name)


o = Lazy()


def f(x):
    return x * o.gain


c = torch.compile(f)
x = torch.ones(1)
c(x)
o.gain = 50.0
want, got = f(x).item(), c(x).item()
print("eager", want, "compiled", got)
sys.exit(want != got)

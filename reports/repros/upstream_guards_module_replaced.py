"""A module that the function imports is replaced in sys.modules: the compiled function goes on with the old one.
Needs torch alone; exits 1 while it is so."""

import sys
import types

import torch

sys.modules["corpus_settings"] = types.ModuleType("corpus_settings")
sys.modules["corpus_settings"].gain = 1.0


def f(x):
    import corpus_settings

    return x * corpus_settings.gain


c = torch.compile(f)
x = torch.ones(1)
c(x)
new = types.ModuleType("corpus_settings")
new.gain = 9.0
sys.modules["corpus_settings"] = new
want, got = f(x).item(), c(x).item()
print("eager", want, "compiled", got)
sys.exit(want != got)

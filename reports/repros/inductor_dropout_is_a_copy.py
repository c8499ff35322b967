"""Dropout of a module that does not train gives the caller's own tensor in eager, and a copy of it when compiled.

Exits 1 while it is a copy."""

import sys

import torch

layer = torch.nn.Dropout(0.3).eval()
x = torch.ones(3)
eager, compiled = layer(x), torch.compile(layer)(x)
print(f"the caller's tensor: eager {eager.data_ptr() == x.data_ptr()}, compiled {compiled.data_ptr() == x.data_ptr()}")
sys.exit(1 if (eager.data_ptr() == x.data_ptr()) != (compiled.data_ptr() == x.data_ptr()) else 0)

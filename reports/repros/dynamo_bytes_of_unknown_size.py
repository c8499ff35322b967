"""`x.nbytes` of a tensor whose size is not known ends the compiled call: "Cannot call numel() on tensor with symbolic sizes/strides".

Exits 1 while it does."""

import sys

import torch


def program(x):
    return x.nbytes, x * 2


compiled = torch.compile(program, dynamic=True)
x = torch.ones(4, 6)
try:
    given = compiled(x)[0]
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
    sys.exit(1)
print(f"eager {program(x)[0]}, compiled {given}")
sys.exit(0 if given == program(x)[0] else 1)

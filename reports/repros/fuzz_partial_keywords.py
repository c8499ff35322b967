"""`keywords` of a functools.partial of a functools.partial: Python merges those of both, torch.compile gives the outer ones alone.

Found by `conformance fuzz -m programs` on torch 2.11.0 (grammar `python`, part `partial`), alive on 2.15.0. `func` of the outer partial is
the inner partial in compiled code, and the plain function in Python. Stage: capture (Dynamo). Needs torch alone; exits 1 while the
defect is there.
"""

import functools
import sys

import torch


def scale(t, k, b=0):
    return t * k + b


def program(x):
    inner = functools.partial(scale, k=3)
    outer = functools.partial(inner, b=1)
    return x + 1, sorted(outer.keywords), outer.func is scale


want, got = program(torch.ones(1))[1:], torch.compile(program, backend="eager")(torch.ones(1))[1:]
print("torch", torch.__version__, "eager", want, "compiled", got)
sys.exit(want != got)

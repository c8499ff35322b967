"""torch.compile takes `next` of a generator that exists outside the function for a constant: the generator is not advanced, and
every call gives what the first gave. No guard, no graph break, no warning.

Found by `conformance fuzz -m programs` on torch 2.15.0 (grammar `world`, place `generator`, shrunk to the plainest program).
Stage: capture (Dynamo; `backend="eager"` shows it). Culprit: `VariableBuilder` (torch/_dynamo/variables/builder.py) rebuilds a generator
that has not been started as one of the traced function, with a guard for its identity and none for its state; the caller's
generator is never advanced. 2.13.0 is right. Needs torch alone; exits 1 while the defect is there.
"""

import sys

import torch


def numbers():
    yield 1.0
    yield 2.0
    yield 3.0


def play(compile):
    values = numbers()

    def scale(x):
        return x * next(values)

    run = compile(scale)
    return [run(torch.ones(1)).item() for _ in range(3)]


want, got = play(lambda fn: fn), play(lambda fn: torch.compile(fn, backend="eager"))
print("torch", torch.__version__, "eager", want, "compiled", got)
sys.exit(want != got)

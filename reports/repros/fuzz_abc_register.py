"""torch.compile does not guard what an abstract base class says of a class: after `Base.register(Box)` isinstance is still False in the
compiled function.

Found by `conformance fuzz -m programs` on torch 2.11.0 (grammar `world`, place `abc register`), alive on 2.15.0. Stage: capture (guards).
Needs torch alone; exits 1 while the defect is there.
"""

import abc
import sys

import torch


def play(compile):
    class Base(abc.ABC):
        pass

    class Box:
        pass

    box = Box()

    def program(x):
        return x * (50.0 if isinstance(box, Base) else 2.0)

    run = compile(program)
    before = run(torch.ones(1)).item()
    Base.register(Box)
    return before, run(torch.ones(1)).item()


want, got = play(lambda fn: fn), play(lambda fn: torch.compile(fn, backend="eager"))
print("torch", torch.__version__, "eager", want, "compiled", got)
sys.exit(want != got)

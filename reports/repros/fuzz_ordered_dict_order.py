"""torch.compile does not guard the order of an OrderedDict: after `move_to_end` between two calls the old order is used.

Found by `conformance fuzz -m programs` on torch 2.11.0 (grammar `world`, place `OrderedDict order`), alive on 2.15.0. The order of a plain
dict is guarded: the same program with `d["a"] = d.pop("a")` compiles again. Stage: capture (guards). Needs torch alone; exits 1
while the defect is there. pytorch#198189 is another defect: a move_to_end *inside* the compiled function.
"""

import collections
import sys

import torch


def play(compile):
    weights = collections.OrderedDict(a=1.0, b=2.0)

    def first(x):
        return x * next(iter(weights.values()))

    run = compile(first)
    before = run(torch.ones(1)).item()
    weights.move_to_end("a")
    return before, run(torch.ones(1)).item()


want, got = play(lambda fn: fn), play(lambda fn: torch.compile(fn, backend="eager"))
print("torch", torch.__version__, "eager", want, "compiled", got)
sys.exit(want != got)

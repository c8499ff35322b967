"""A checkpointed dropout compiled with `backend="eager"`: the backward recomputes it with another mask, so that the gradient is wrong,
and leaves the generator in another state. `aot_eager` and `inductor` are right.

Found by `conformance fuzz -m programs` on torch 2.15.0 (grammar `randoms`, around `checkpoint`). Stage: capture: what Dynamo puts in
place of torch.utils.checkpoint does not keep the state of the generator when it runs as it is. Needs torch alone; exits 1 while the
defect is there.
"""

import sys

import torch
from torch.utils.checkpoint import checkpoint


def program(x):
    return checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)


def play(compile):
    """Is the gradient zero where the output is, and is the generator's state the same after the backward?"""
    torch.manual_seed(3)
    x = torch.linspace(0.1, 0.9, 8, requires_grad=True)
    out = compile(program)(x)
    before = torch.get_rng_state()
    out.sum().backward()
    return bool(((out != 0) == (x.grad != 0)).all()), torch.equal(before, torch.get_rng_state())


want, got = play(lambda fn: fn), play(lambda fn: torch.compile(fn, backend="eager"))
print("torch", torch.__version__, "eager", want, "compiled", got)
sys.exit(want != got)

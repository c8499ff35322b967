"""A write to one row of an expanded input runs in eager and is refused by torch.compile: "more than one element of the written-to
tensor refers to a single memory location". The row itself does not overlap; the copy of the whole input that AOTAutograd puts at the
end of the graph does.

Found by `conformance fuzz -m programs` on torch 2.11.0 (grammar `scenarios`), alive on 2.15.0. Stage: decomposition
(functionalization; `backend="eager"` is right, `backend="aot_eager"` raises). Needs torch alone; exits 1 while the defect is there.
"""

import sys

import torch


def program(x):
    x[0].add_(1)
    return x * 2


def play(compile):
    x = torch.arange(3.0).expand(2, 3)
    try:
        return compile(program)(x).tolist(), x.tolist()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


want, got = play(lambda fn: fn), play(lambda fn: torch.compile(fn, backend="aot_eager"))
print("torch", torch.__version__, "\neager   ", want, "\ncompiled", got)
sys.exit(want != got)

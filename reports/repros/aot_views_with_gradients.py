"""Two views of one tensor that wants gradients are given and written to: the backward cannot be captured (`outs_to_grad length (2) != tangents
length (3)`)."""

import torch


def program(first, second):
    first.mul_(2)
    second.add_(1)
    return first.sum() + second.sum()


def gradient(run):
    base = torch.arange(11.0, requires_grad=True)
    held = base * 1
    run(held[:6].view(2, 3), held[5:].view(3, 2)).backward()
    return base.grad


eager = gradient(program)
compiled = gradient(torch.compile(program, backend="aot_eager"))
if not torch.equal(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: eager {eager.tolist()}, compiled {compiled.tolist()}")

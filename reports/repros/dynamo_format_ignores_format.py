"""`format(value, spec)` ignores the format: `format(5, "03d")` gives "5". No error. See pytorch#144830, whose mend made it so."""

import torch


def call(x):
    return x + 1, format(5, "03d"), format(3.14159, ".2f"), format("a", ">3"), format(10, "b")


said = torch.compile(call, backend="eager")(torch.zeros(1))[1:]
if said != call(torch.zeros(1))[1:]:
    raise SystemExit(f"torch {torch.__version__}: {said}")

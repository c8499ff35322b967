"""The diagonal of a matrix whose sizes are known only at run time: a shape of its own, and memory that is not there, where a size is 0."""

import subprocess
import sys

import torch

torch._dynamo.config.capture_scalar_outputs = True


def program(x):
    n, m = x.tolist()
    torch._check(n >= 0)
    torch._check(m >= 0)
    return torch.ones(n, n * m).diagonal().clone()


def main():
    compiled = torch.compile(program)
    for sizes in ((3, 2), (4, 1), (3, 0)):
        made, expected = compiled(torch.tensor(sizes)), program(torch.tensor(sizes))
        if made.shape != expected.shape:
            raise SystemExit(
                f"torch {torch.__version__}: {sizes} gives {tuple(made.shape)}, eager {tuple(expected.shape)}"
            )


if len(sys.argv) > 1:
    main()
else:  # in a process of its own: it may end by a signal
    ended = subprocess.run([sys.executable, __file__, "inside"]).returncode
    if ended:
        raise SystemExit(f"torch {torch.__version__}: exit {ended}")

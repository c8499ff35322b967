"""pytorch#187319: a custom op that writes to its argument from the second process on; the write is lost."""

import os
import sys

import torch


def work(writes):
    @torch.library.custom_op("third::accumulate", mutates_args=("x",) if writes else ())
    def accumulate(x: torch.Tensor, y: torch.Tensor) -> None:
        if writes:
            x.add_(y)

    accumulate.register_fake(lambda x, y: None)

    @torch.compile
    def program(x, y):
        z = x + 0.0
        accumulate(z, y)
        return z * 2.0

    return program(torch.ones(2), torch.full((2,), 10.0)).tolist()


if "WRITES" in os.environ:
    wanted = [22.0, 22.0] if os.environ["WRITES"] == "1" else [2.0, 2.0]
    sys.exit(work(os.environ["WRITES"] == "1") != wanted)
codes = [os.system(f"WRITES={writes} {sys.executable} {__file__}") for writes in (0, 1)]
print(codes)
sys.exit(codes != [0, 0])

"""No report known: neighbour: the opaque function at the top of the region, not inside a checkpoint."""

import multiprocessing
import os
import sys
import tempfile

import torch

SCALE = [1.0]


@torch._dynamo.allow_in_graph
def opaque(x):
    return x * SCALE[0]


def run(scale):
    SCALE[0] = scale
    return torch.compile(lambda t: opaque(t) + 1)(torch.ones(2)).tolist()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        got = []
        for scale in (1.0, 3.0):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                got.append(pool.apply(run, (scale,)))
    print(got)
    sys.exit(got != [[2.0, 2.0], [4.0, 4.0]])

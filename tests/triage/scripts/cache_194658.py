"""pytorch#194658: an opaque function inside a checkpointed region: its change is not in the cache key."""

import multiprocessing
import os
import sys
import tempfile

import torch
from torch.utils.checkpoint import checkpoint

SCALE = [1.0]


@torch._dynamo.allow_in_graph
def opaque(x):
    return x * SCALE[0]


def body(x):
    return opaque(x).sin()


def run(scale):
    SCALE[0] = scale
    x = torch.full((2,), 0.5, requires_grad=True)
    f = torch.compile(lambda t: checkpoint(body, t, use_reentrant=False))
    return f(x).tolist()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        got = []
        for scale in (1.0, 3.0):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                got.append(pool.apply(run, (scale,)))
    want = [torch.full((2,), 0.5 * s).sin().tolist() for s in (1.0, 3.0)]
    print(want, got)
    sys.exit(not torch.allclose(torch.tensor(want), torch.tensor(got)))

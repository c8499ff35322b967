"""pytorch#181564: autocast to another dtype in a second process that shares the cache."""

import multiprocessing
import os
import sys
import tempfile

import torch


def run(dtype):
    f = torch.compile(lambda a, b: a @ b)
    with torch.autocast("cpu", dtype=dtype):
        return str(f(torch.ones(4, 4), torch.ones(4, 4)).dtype)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        got = []
        for dtype in (torch.bfloat16, torch.float16):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                got.append(pool.apply(run, (dtype,)))
    print("autocast to bfloat16 gives", got[0], "and to float16 gives", got[1])
    sys.exit(got != ["torch.bfloat16", "torch.float16"])

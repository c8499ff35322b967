"""pytorch#191110: autocast without a dtype inside; the ambient dtype differs between two processes with one cache."""

import multiprocessing
import os
import sys
import tempfile

import torch


def run(dtype):
    torch.set_autocast_dtype("cpu", dtype)

    @torch.compile
    def f(a, b):
        with torch.autocast("cpu"):
            return a @ b

    return str(f(torch.ones(4, 4), torch.ones(4, 4)).dtype)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        got = []
        for dtype in (torch.bfloat16, torch.float16):
            with multiprocessing.get_context("fork").Pool(1) as pool:
                got.append(pool.apply(run, (dtype,)))
    print(got)
    sys.exit(got != ["torch.bfloat16", "torch.float16"])

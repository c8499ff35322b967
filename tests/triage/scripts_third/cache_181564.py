"""pytorch#181564: what was compiled under one autocast dtype is served under another."""

import os
import subprocess
import sys
import tempfile

import torch


def work(dtype):
    with torch.autocast("cpu", dtype=getattr(torch, dtype)):
        return torch.compile(torch.mm)(torch.ones(4, 4), torch.ones(4, 4)).dtype


if len(sys.argv) > 1:
    print(work(sys.argv[1]))
    sys.exit()
with tempfile.TemporaryDirectory() as folder:
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
    for dtype in ("bfloat16", "float16"):
        done = subprocess.run([sys.executable, __file__, dtype], env=env, capture_output=True, text=True)
        print(dtype, done.stdout.strip())
        assert done.stdout.split() == [f"torch.{dtype}"], done.stderr

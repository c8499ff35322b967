"""A program that was compiled and cached for two inputs that lie apart is served, in a new process, for two that overlap: wrong values,
and no error. AOTAutograd's cache key does not say which inputs share memory."""

import os
import subprocess
import sys
import tempfile

PROGRAM = """
import sys
import torch

def scaled(x, y):
    x.mul_(2.0)
    return x + y

def inputs():
    if sys.argv[1] == "apart":
        return torch.arange(4.0), torch.arange(2.0, 6.0)
    whole = torch.arange(8.0)
    return whole[:4], whole[2:6]

eager, compiled = scaled(*inputs()), torch.compile(scaled)(*inputs())
if not torch.equal(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: eager gives {eager.tolist()}, compiled {compiled.tolist()}")
"""

with tempfile.TemporaryDirectory() as folder:
    caches = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
    subprocess.run([sys.executable, "-c", PROGRAM, "apart"], env=caches, check=True)
    sys.exit(subprocess.run([sys.executable, "-c", PROGRAM, "overlapping"], env=caches).returncode)

"""`as_strided` from the storage's start, compiled and cached for a tensor that begins there, is served in a new process for one that does
not: wrong values, and no error. The place of an input in its storage is no part of AOTAutograd's cache key."""

import os
import subprocess
import sys
import tempfile

PROGRAM = """
import sys
import torch

def first_of_storage(x):
    return x.as_strided((3,), (1,), 0) + 1.0

start = int(sys.argv[1])
x = torch.arange(12.0)[start : start + 6]
eager, compiled = first_of_storage(x), torch.compile(first_of_storage)(x)
if not torch.equal(eager, compiled):
    raise SystemExit(f"torch {torch.__version__}: eager gives {eager.tolist()}, compiled {compiled.tolist()}")
"""

with tempfile.TemporaryDirectory() as folder:
    caches = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
    subprocess.run([sys.executable, "-c", PROGRAM, "0"], env=caches, check=True)
    sys.exit(subprocess.run([sys.executable, "-c", PROGRAM, "5"], env=caches).returncode)

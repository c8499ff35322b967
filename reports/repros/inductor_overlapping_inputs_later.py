"""Compiled for two inputs that lie apart, then called with two that overlap: the write through one is not seen in the other. Neighbours of
pytorch#139789."""

import os

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # a kept program of the other order would be taken

import torch  # noqa: E402


def scaled(x, y):
    x.mul_(2)
    return x + y


compiled = torch.compile(scaled)
compiled(torch.ones(4), torch.ones(4))
failed = []
for name, part in {"overlapping": slice(2, 6), "the same": slice(0, 4)}.items():
    ours, theirs = torch.arange(8.0), torch.arange(8.0)
    expected = scaled(theirs[:4], theirs[part])
    try:
        result = compiled(ours[:4], ours[part])
    except Exception as error:
        failed.append(f"{name}: {type(error).__name__}")
        continue
    if not torch.equal(result, expected):
        failed.append(f"{name}: eager {expected.tolist()}, compiled {result.tolist()}")
if failed:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(failed)}")

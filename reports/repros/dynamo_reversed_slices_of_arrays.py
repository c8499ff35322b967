"""NumPy arrays read or written backwards inside a compiled program: other elements, lost writes, refusals."""

import numpy as np
import torch


def stops(a):
    return a[3:0:-1] * 2


def every_second(a):
    return a[4::-2] * 2


def added_to_view(a):
    b = a[::-1]
    b += 1
    return a * 1


def written(a):
    a[::-1] = np.arange(6.0) * 10
    return a * 1


wrong = []
for program in (stops, every_second, added_to_view, written):
    torch.compiler.reset()
    given, also = np.arange(6.0), np.arange(6.0)
    want = program(given)
    try:
        got = torch.compile(program)(also)
        if not (np.array_equal(got, want) and np.array_equal(also, given)):
            wrong.append(program.__name__)
    except Exception as error:
        wrong.append(f"{program.__name__} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")

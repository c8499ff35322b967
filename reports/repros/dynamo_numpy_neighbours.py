"""NumPy code that is compiled gives other values, dtypes and errors than NumPy, beyond pytorch#198052 and #198056: einsum of int8 does not
go round, divmod and rint have other dtypes, hypot and logaddexp of integers are refused, the sort of a reversed view is lost. No warning."""

import numpy as np
import torch

i8, i4, f4 = (
    np.array([-128, 100, 127], dtype=np.int8),
    np.array([7, -7, 3], dtype=np.int32),
    np.array([1.5, -1.5, 2.5], dtype=np.float32),
)


def sort_reversed(a):
    a[::-1].sort()
    return a * 1


CALLS = {
    "einsum of int8": (lambda a: np.einsum("i,i->", a, a), i8),
    "divmod of float32": (lambda a: np.divmod(a, 3)[0], f4),
    "rint of int32": (lambda a: np.rint(a), i4),
    "trunc of int32": (lambda a: np.trunc(a), i4),
    "vander of float32": (lambda a: np.vander(a, 3), f4),
    "tri": (lambda a: np.tri(3), f4),
    "hypot of int32": (lambda a: np.hypot(a, 1), i4),
    "logaddexp of int32": (lambda a: np.logaddexp(a, a), i4),
    "cumsum of bool": (lambda a: np.cumsum(a > 0), i4),
    "sort of a reversed view": (sort_reversed, f4),
}
found = []
for name, (call, array) in CALLS.items():
    torch._dynamo.reset()
    expected = np.asarray(call(array.copy()))
    try:
        result = np.asarray(torch.compile(call, backend="eager")(array.copy()))
    except Exception as error:
        found.append(f"{name} raises {type(error).__name__}")
        continue
    if result.dtype != expected.dtype or not np.allclose(result, expected):
        found.append(f"{name} is {result.dtype} {result.tolist()}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))

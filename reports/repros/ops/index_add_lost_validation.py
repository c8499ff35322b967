"""index_add, lost_validation: torch.index_add(float32[3, 2], 0, int64[2], float32[2]): call: eager
raises RuntimeError: source tensor shape must match self tensor shape, excluding the specified
dimension. Got self.shape = [3, 2] source.shape = [2]; the compiled program does not raise

Found by `conformance ops` (form errors).
Dtypes: float32.
Stage: runtime.
Seen with torch 2.15.0+cu132.
Exits 1 while the defect is there, 0 once it is gone.
"""
# Upstream: https://github.com/pytorch/pytorch/issues/121135

import sys

import torch


def f(t0, t1, t2):
    return torch.index_add(t0, 0, t1, t2)


def inputs():
    return [
        (torch.ones(6, dtype=torch.float32).reshape((3, 2)), torch.ones(2, dtype=torch.int64).reshape((2,)), torch.ones(2, dtype=torch.float32).reshape((2,)), ),
    ]

def leaves(result):
    return [x for part in result for x in leaves(part)] if isinstance(result, (list, tuple)) else [result]


def about(x):
    if not isinstance(x, torch.Tensor):
        return repr(x)
    strides = [s for s, size in zip(x.stride(), x.shape) if size > 1] if x.numel() else []
    return f"{x.dtype} {list(x.shape)} strides {strides} requires_grad={x.requires_grad}"


def shares(x, args):
    places = [a.untyped_storage().data_ptr() for a in args]
    return isinstance(x, torch.Tensor) and x.numel() and x.untyped_storage().data_ptr() in places


def outcome(g):
    said = []
    for args in inputs():
        torch.manual_seed(0)
        try:
            result = g(*args)
        except Exception as error:
            print(f"    raises {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160])
            said.append("raises")
            continue
        said += [type(result).__name__, *leaves(result), *args]
        said += [f"output {i} shares memory with an input" for i, x in enumerate(leaves(result)) if shares(x, args)]
    return said


def same(a, b):
    return about(a) == about(b)

print("torch", torch.__version__)
print("eager:")
eager = outcome(f)
print("compiled:")
compiled = outcome(torch.compile(f))
wrong = len(eager) != len(compiled)
if wrong:
    print("eager:", [x for x in eager if isinstance(x, str)], "compiled:", [x for x in compiled if isinstance(x, str)])
for a, b in zip(eager, compiled):
    if not same(a, b):
        wrong = True
        print(f"eager:    {about(a)}\n{a}\ncompiled: {about(b)}\n{b}")
sys.exit(wrong)

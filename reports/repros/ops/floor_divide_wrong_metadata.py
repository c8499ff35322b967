"""floor_divide, wrong_metadata: torch.floor_divide(float32[10, 5] stride (1, 10), float32[]): output
0: stride (5, 1), eager has (1, 10); at fault: codegen

Found by `conformance ops` (form transposed).
Dtypes: float32, bfloat16, float16, float64.
Stage: runtime.
Seen with torch 2.15.0+cu132.
Exits 1 while the defect is there, 0 once it is gone.
"""
# Upstream: https://github.com/pytorch/pytorch/issues/198364

import sys

import torch


def f(t0, t1):
    return torch.floor_divide(t0, t1)


def inputs():
    return [
        (torch.ones(50, dtype=torch.float32).as_strided((10, 5), (1, 10), 0), torch.ones(1, dtype=torch.float32).reshape(()), ),
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

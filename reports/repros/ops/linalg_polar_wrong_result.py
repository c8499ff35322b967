"""linalg.polar, wrong_result: torch.linalg.polar(complex64[5, 5] stride (0, 1)): output 1: 20 of 25
elements out of tolerance; largest error 1.38 (eager's 6.51e-07), rms 0.736 (eager's 3.05e-07),
values of rms 1.6

Found by `conformance ops` (form expanded).
Dtypes: complex64, complex128.
Stage: decomposition.
Seen with torch 2.15.0+cu132.
Exits 1 while the defect is there, 0 once it is gone.
"""
# Upstream: https://github.com/pytorch/pytorch/issues/198118

import sys

import torch


def f(t0):
    return torch.linalg.polar(t0)


def inputs():
    return [
        (torch.tensor([(-1.8840830326080322-0.39240574836730957j), (-0.9606232643127441-0.5334346294403076j), (-1.7667970657348633+0.8025789260864258j), (-1.7928104400634766-0.1274430751800537j), (0.6952245235443115-0.674152135848999j)], dtype=torch.complex64).as_strided((5, 5), (0, 1), 0), ),
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
    if about(a) != about(b) or not isinstance(a, torch.Tensor):
        return about(a) == about(b)
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
    except AssertionError:
        return False
    return True

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

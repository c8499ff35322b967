"""linalg.matrix_sqrth, wrong_result: torch.linalg.matrix_sqrth(complex64[5, 5] stride (0, 1)): output
0: 20 of 25 elements out of tolerance; largest error 0.104 (eager's 1.93e-07), rms 0.0516 (eager's
6.38e-08), values of rms 0.488

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
    return torch.linalg.matrix_sqrth(t0)


def inputs():
    return [
        (torch.tensor([(2.281256675720215+5.471031627735101e-09j), (-0.24336566030979156-0.10584020614624023j), (0.03887103870511055-0.3889605700969696j), (-1.1024041175842285+0.28047293424606323j), (-0.5915608406066895+0.424228698015213j)], dtype=torch.complex64).as_strided((5, 5), (0, 1), 0), ),
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

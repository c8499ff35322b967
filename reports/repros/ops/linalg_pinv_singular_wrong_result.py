"""linalg.pinv.singular, wrong_result: op0(complex64[3, 2] stride (0, 1), complex64[3, 2] stride (1,
3)): output 0: 6 of 9 elements out of tolerance; largest error 0.723 (eager's 1.05e-07), rms 0.418
(eager's 6.13e-08), values of rms 0.284

Found by `conformance ops` (form expanded).
Dtypes: complex64, complex128.
Stage: decomposition.
Seen with torch 2.15.0+cu132.
Exits 1 while the defect is there, 0 once it is gone.
"""
# Upstream: https://github.com/pytorch/pytorch/issues/198118

import sys

import torch

from torch.testing._internal.common_methods_invocations import op_db

op0 = next(op for op in op_db if (op.name, op.variant_test_name) == ('linalg.pinv', 'singular'))


def f(t0, t1):
    return op0(t0, t1)


def inputs():
    return [
        (torch.tensor([(-0.026230692863464355-0.36378049850463867j), (0.5681924819946289-0.06977693736553192j)], dtype=torch.complex64).as_strided((3, 2), (0, 1), 0), torch.tensor([(-0.5177233219146729-0.5484265685081482j), (-0.18953993916511536-0.43880024552345276j), (-0.40171223878860474-0.20333975553512573j), (0.14729437232017517+0.38264840841293335j), (-0.5394049882888794-0.39482301473617554j), (0.25898122787475586-0.563888669013977j)], dtype=torch.complex64).as_strided((3, 2), (1, 3), 0), ),
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

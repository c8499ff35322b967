"""pinverse, wrong_result: torch.pinverse(complex64[5, 5]): output 0: 20 of 25 elements out of
tolerance; largest error 1.59 (eager's 2.73e-07), rms 0.502 (eager's 1.44e-07), values of rms 0.475

Found by `conformance ops` (form plain).
Dtypes: complex64, complex128.
Stage: decomposition.
Seen with torch 2.15.0+cu132.
Exits 1 while the defect is there, 0 once it is gone.
"""
# Upstream: https://github.com/pytorch/pytorch/issues/198118

import sys

import torch


def f(t0):
    return torch.pinverse(t0)


def inputs():
    return [
        (torch.tensor([(-0.3918393850326538-0.39663222432136536j), (-0.3765043020248413-0.2646658718585968j), (-0.5006288290023804+0.15515132248401642j), (-0.2743678689002991+0.3249821066856384j), (0.22152230143547058-0.44064444303512573j), (0.5667941570281982-0.08632522821426392j), (0.4171828627586365+0.3825353980064392j), (-0.14706233143806458+0.08085520565509796j), (-0.40885108709335327+0.13256345689296722j), (-0.35502108931541443+0.1433963179588318j), (0.3248324394226074-0.4484374225139618j), (-0.5906700491905212+0.2782379388809204j), (0.4864833354949951+0.209392249584198j), (-0.4003910422325134+0.0021134614944458008j), (0.31694525480270386-0.378664493560791j), (0.02166386879980564-0.18557918071746826j), (0.3452884554862976-0.19041818380355835j), (-0.3083895742893219+0.20258265733718872j), (0.38566115498542786-0.09880614280700684j), (0.46348220109939575-0.4971514642238617j), (-0.2658190131187439-0.5995948910713196j), (0.1289491504430771+0.4579036831855774j), (-0.042872682213783264+0.4334280490875244j), (0.1830870509147644-0.6770025491714478j), (0.41428646445274353+0.3920735716819763j)], dtype=torch.complex64).reshape((5, 5)), ),
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

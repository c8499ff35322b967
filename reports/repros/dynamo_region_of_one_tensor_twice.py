"""A nested_compile_region that is first called with one tensor twice computes all later calls as if both arguments were that one: wrong values,
no error. The other way round it fails with an IndexError. A region that is called once under autocast and once not has one dtype for both."""

import torch


@torch.compiler.nested_compile_region
def difference(a, b):
    return a - b


@torch.compiler.nested_compile_region
def product(a):
    return a @ a


def first_one(x):
    return difference(x, x) + difference(x * 5, x)


def first_two(x):
    return difference(x * 5, x) + difference(x, x)


def autocast(x):
    plain = product(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return product(plain)


found = []
for call in (first_one, first_two, autocast):
    torch._dynamo.reset()
    x = torch.eye(3)
    expected = call(x)
    try:
        got = torch.compile(call, backend="aot_eager")(x)
    except Exception as error:
        found.append(f"{call.__name__}: {type(error).__name__}: {str(error).splitlines()[0]}")
        continue
    if got.dtype != expected.dtype or not torch.equal(got, expected):
        found.append(
            f"{call.__name__}: {got.dtype}, {got.diagonal().tolist()}, eager gives {expected.dtype}, {expected.diagonal().tolist()}"
        )
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))

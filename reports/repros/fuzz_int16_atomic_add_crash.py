"""Inductor for GPUs: adding up int8, uint8 or int16 at given indices does not compile: "atomic_add does not support int16".

Triton has no atomic addition below 32 bits but for float16 and bfloat16. Inductor leaves int64, bool and (on older GPUs) bfloat16 to
PyTorch, and does not know of the small integers. Found by shape fuzzing on torch 2.14.1 for sm_90 (a generated graph, shrunk to an
`index_reduce` of int16). Needs a GPU; where there is none it asks Triton alone, which needs none. Exits 1 while the defect is there.
"""

import sys

import torch

SMALL = (torch.int8, torch.uint8, torch.int16)


def on_a_gpu(dtype):
    torch._dynamo.reset()
    x, at = torch.arange(4, device="cuda").to(dtype), torch.tensor([1, 1, 0], device="cuda")
    try:
        out = torch.compile(lambda x, at: x.index_add(0, at, x[at]))(x, at)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
    return "" if torch.equal(out, x.index_add(0, at, x[at])) else f"{out.tolist()}, eager gives {x.index_add(0, at, x[at]).tolist()}"


def by_triton_alone(dtype):
    import triton
    import triton.language as tl
    from torch._inductor.utils import needs_fallback_due_to_atomic_add_limitations
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    if needs_fallback_due_to_atomic_add_limitations(dtype):
        return ""
    name = {torch.int8: "i8", torch.uint8: "u8", torch.int16: "i16"}[dtype]
    source = ASTSource(fn=triton.jit(add), signature={"out": f"*{name}", "value": name}, constexprs={})
    globals()["tl"] = tl
    try:
        triton.compile(source, target=GPUTarget("cuda", 90, 32))
    except Exception as error:
        return str(error).strip().splitlines()[-1]
    return ""


def add(out, value):
    tl.atomic_add(out, value)  # noqa: F821


wrong = False
for dtype in SMALL:
    said = on_a_gpu(dtype) if torch.cuda.is_available() else by_triton_alone(dtype)
    wrong |= bool(said)
    print(f"{dtype}: {said or 'right'}")
print("torch", torch.__version__, "WRONG" if wrong else "right")
sys.exit(wrong)

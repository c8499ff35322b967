"""Operands of two dtypes: the dtype of block_diag and addr with a tensor without dims differs from eager's, and mv, cross and heaviside
compute what eager refuses. No error. The decompositions promote for themselves. Next of kin: pytorch#147108 (addmv)."""

import torch

double, number, narrow = torch.randn(4, 3, dtype=torch.float64), torch.tensor(1.5, dtype=torch.float64), torch.bfloat16
looked_at = {
    "block_diag(float32, 0-d float64)": (torch.block_diag, (torch.randn(2, 3), number)),
    "block_diag(bfloat16, 0-d float32)": (torch.block_diag, (torch.randn(2, 3).to(narrow), torch.tensor(1.5))),
    "addr(0-d float64, float32, float32)": (torch.addr, (number, torch.randn(3), torch.randn(4))),
    "mv(float64, float32)": (torch.mv, (double, torch.randn(3))),
    "cross(float64, float32)": (torch.linalg.cross, (double, torch.randn(4, 3))),
    "heaviside(float32, 0-d float64)": (torch.heaviside, (torch.randn(3), number)),
}


def dtype_of(call, inputs):
    try:
        return str(call(*inputs).dtype)
    except Exception:
        return "refused"


found = []
for name, (op, inputs) in looked_at.items():
    torch._dynamo.reset()

    def program(*given, op=op):
        return op(*given)

    eager, compiled = dtype_of(program, inputs), dtype_of(torch.compile(program), inputs)
    if eager != compiled:
        found.append(f"{name}: eager {eager}, compiled {compiled}")
if found:
    raise SystemExit(f"torch {torch.__version__}:\n" + "\n".join(found))

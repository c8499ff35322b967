"""The sum of complex tensors without elements does not compile, and neither does the backward of a complex column (the transpose of a
row) that two ops read: Inductor's decomposition of add views complex numbers as pairs, which these strides do not allow. See pytorch#190274."""

import torch


def gradient(call, x):
    x = x.detach().requires_grad_()
    first, second = call(x)
    return torch.autograd.grad(first.abs().sum() + second.abs().sum(), x)[0]


column = torch.tensor([[1 + 2j, 2 - 1j, -1 + 0.5j]]).t()
looked_at = {
    "x + x, 3 rows without columns": (lambda x: x + x, torch.zeros(3, 0, dtype=torch.complex64), None),
    "x + x, 3 columns without rows": (lambda x: x + x, torch.zeros(0, 3, dtype=torch.complex64), None),
    "x + x, no elements": (lambda x: x + x, torch.zeros(0, dtype=torch.complex64), None),
    "sgn and square of a column, backward": (lambda x: (torch.sgn(x), x.square()), column, gradient),
    "angle and double of a column, backward": (lambda x: (x.angle(), x * 2), column, gradient),
}
found = []
for name, (call, x, derived) in looked_at.items():
    torch._dynamo.reset()
    (derived(call, x) if derived else call(x))  # eager works
    try:
        compiled = torch.compile(call)
        derived(compiled, x) if derived else compiled(x)
    except Exception as error:
        said = next(line for line in str(error).splitlines() if "to view" in line)
        found.append(f"{name}: {type(error).__name__}: {said.strip()}")
if found:
    raise SystemExit(f"torch {torch.__version__}: complex numbers that eager adds do not compile:\n" + "\n".join(found))

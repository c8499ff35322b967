"""`(x + y.t()).argmax()` gives another position than eager: a kernel that reads both in tiles counts the elements of a vector as neighbours
of one row, while they are in one column. Wrong for every dtype, no error. A neighbour of pytorch#178964, which is about rows."""

import torch

x = torch.arange(420.0).mul(7).remainder(11).reshape(21, 20)
x[13, 9] = 99
y = torch.arange(420.0).mul(5).remainder(7).reshape(20, 21)
images = torch.arange(210.0).mul(7).remainder(11).reshape(2, 3, 5, 7)
images[1, 2, 0, 5] = 99
last = torch.rand(2, 3, 5, 7).to(memory_format=torch.channels_last)
calls = {
    "argmax of x + y.t()": (lambda a, b: (a + b.t()).argmax(), x, y),
    "argmin of -x + y.t()": (lambda a, b: (b.t() - a).argmin(), x, y),
    "argmax of int64": (lambda a, b: (a + b.t()).argmax(), x.long(), y.long()),
    "argmax of channels first plus channels last": (lambda a, b: (a + b).argmax(), images, last),
}
found = []
for name, (call, *inputs) in calls.items():
    torch._dynamo.reset()
    right, made = call(*inputs).item(), torch.compile(call)(*inputs).item()
    if right != made:
        found.append(f"{name}: {made} and not {right}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))

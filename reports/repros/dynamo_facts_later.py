"""Facts of a tensor that no guard holds: a leaf or a result, its function, whether it keeps its gradient, a Buffer or a plain tensor."""

import torch
from torch import nn

leaf = torch.ones(3, requires_grad=True)
kept = leaf * 1
kept.retain_grad()
first, second = torch.ones(4, requires_grad=True).split(2)
PROGRAMS = {
    "is_leaf": (lambda t: t.is_leaf, leaf, leaf * 1),
    "grad_fn": (lambda t: t.grad_fn is None, leaf, leaf * 1),
    "retains_grad": (lambda t: t.retains_grad, leaf * 1, kept),
    "output_nr": (lambda t: t.output_nr == 0, first, second),
    "size of the storage": (lambda t: t.untyped_storage().size() == 12, torch.ones(3), torch.ones(6)[:3]),
    "isinstance of a Buffer": (lambda t: isinstance(t, nn.Buffer), torch.ones(3), nn.Buffer(torch.ones(3))),
}
x, wrong = torch.ones(3), []
for name, (asked, before, after) in PROGRAMS.items():
    torch.compiler.reset()

    def program(x, t, asked=asked):
        return x * (2 if asked(t) else 3)

    compiled = torch.compile(program)
    try:
        compiled(x, before)
        if not torch.equal(compiled(x, after), program(x, after)):
            wrong.append(name)
    except Exception as error:
        wrong.append(f"{name} ({type(error).__name__})")

torch.compiler.reset()


def dtype_is_asked(x):
    return x * (2 if torch.get_autocast_dtype("cpu") == torch.bfloat16 else 3)


compiled, dtype = torch.compile(dtype_is_asked), torch.get_autocast_dtype("cpu")
try:
    compiled(x)
    torch.set_autocast_dtype("cpu", torch.float16 if dtype == torch.bfloat16 else torch.bfloat16)
    if not torch.equal(compiled(x), dtype_is_asked(x)):
        wrong.append("autocast's dtype")
finally:
    torch.set_autocast_dtype("cpu", dtype)
if wrong:
    raise SystemExit(f"torch {torch.__version__}: not noticed: {', '.join(wrong)}")

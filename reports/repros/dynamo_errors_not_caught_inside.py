"""The program catches the error of an op; compiled, the error ends the call. Neighbours of pytorch#198192 and #148475."""

import torch

x = torch.arange(3.0)
CALLS = {
    "squeeze(4)": lambda x: x.squeeze(4),
    "permute(0, 1)": lambda x: x.permute(0, 1),
    "x[5] = 1": lambda x: x.clone().__setitem__(5, 1.0),
    "len of a number": lambda x: len(x.sum()),
    "loop over a number": lambda x: list(x.sum()),
    "view(2, 2)": lambda x: x.view(2, 2),
    "cat of other dims": lambda x: torch.cat([x, x.view(1, 3)]),
    "sum of other sizes": lambda x: x + torch.ones(2),
    "product of other sizes": lambda x: torch.ones(2, 3) @ torch.ones(2, 3),
    "stack of nothing": lambda x: torch.stack([]),
    "unpacked into two": lambda x: (lambda a, b: a)(*x),
    "torch._assert": lambda x: torch._assert(x.dim() == 2, "a matrix"),
    "behind the storage": lambda x: x.as_strided((10,), (1,)).sum(),
}


def caught(call):
    def program(x):
        try:
            return call(x)
        except (IndexError, RuntimeError, TypeError, ValueError, AssertionError):
            return x * 2

    return program


def ends(program) -> bool:
    torch._dynamo.reset()
    try:
        program(x)
    except Exception:
        return True
    return False


found = [name for name, call in CALLS.items() if not ends(caught(call)) and ends(torch.compile(caught(call)))]
if found:
    raise SystemExit(
        f"torch {torch.__version__}: the program catches the error, compiled it ends the call: {', '.join(found)}"
    )

"""Local names behind a graph break: locals() has Dynamo's own names and lacks the program's; eval of a local name raises NameError, with
no graph break at all."""

import torch


@torch.compiler.disable
def cut():
    pass


def names(x):
    width = 3
    cut()
    return x * 2, sorted(locals()), width


def value(x):
    width = 3
    cut()
    return x * locals()["width"]


def evaluated(x):
    width = 3  # noqa: F841
    return x * eval("width + 1")


x, wrong = torch.ones(2), []
for program in (names, value, evaluated):
    torch.compiler.reset()
    eager = program(x)
    try:
        compiled = torch.compile(program, backend="eager")(x)
    except Exception as error:
        wrong.append(f"{program.__name__}: {type(error).__name__}: {error}")
        continue
    if isinstance(eager, tuple) and eager[1:] != compiled[1:]:
        wrong.append(f"{program.__name__}: {compiled[1:]}, eager gives {eager[1:]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

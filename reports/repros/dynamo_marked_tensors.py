"""Attributes of a tensor are lost by methods that write to it and return it, and cannot be deleted; id() of the result is another one."""

import torch


def marked(x):
    y = x * 2
    y.mark = 3
    return y


PROGRAMS = {
    "add_": lambda x: hasattr(marked(x).add_(1), "mark"),
    "relu_": lambda x: hasattr(torch.relu_(marked(x)), "mark"),
    "out=": lambda x: hasattr(torch.sin(x, out=marked(x)), "mark"),
    "contiguous": lambda x: hasattr(marked(x).contiguous(), "mark"),
    "id": lambda x: (lambda y: id(y) == id(y.add_(1)))(x * 2),
}


def deleted(x):
    y = marked(x)
    del y.mark
    return hasattr(y, "mark")


x, wrong = torch.ones(3), []
for name, asked in {**PROGRAMS, "del": deleted}.items():
    torch.compiler.reset()

    def program(x, asked=asked):
        return asked(x), x + 1

    try:
        if torch.compile(program)(x)[0] != program(x)[0]:
            wrong.append(name)
    except Exception as error:
        wrong.append(f"{name} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")

"""torch 2.12 to 2.14: two classes have an equal value of their own; that of the second one changes, or is deleted: the compiled program goes on with the old one."""

import torch

x = torch.arange(3.0)
wrong = []


def replaced(second):
    second.held = 5


def deleted(second):
    del second.held


for change in (replaced, deleted):
    torch.compiler.reset()

    class Base:
        held = 7

    class First(Base):
        held = 1

    class Second(Base):
        held = 1

    def program(x, first, second):
        return x * first.held + 10 * x * second.held

    compiled, given = torch.compile(program), (First(), Second())
    compiled(x, *given)
    change(Second)
    if not torch.equal(compiled(x, *given), program(x, *given)):
        wrong.append(f"the value is {change.__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: not noticed: {', '.join(wrong)}")

"""Operators where Python asks the right operand first, since it is of a subclass: the left one's method is used (2.11)."""

import torch

x = torch.arange(3.0) + 1


class Left:
    def __add__(self, other):
        return 3

    def __eq__(self, other):
        return False

    def __lt__(self, other):
        return False


class Right(Left):
    def __radd__(self, other):
        return 2

    def __eq__(self, other):
        return True

    def __gt__(self, other):
        return True


class Own(set):
    def __eq__(self, other):
        return True


PROGRAMS = {
    "+": lambda x, left, right: x * (left + right),
    "==": lambda x, left, right: x * (2 if left == right else 3),
    "<": lambda x, left, right: x * (2 if left < right else 3),
    "== of sets": lambda x, left, right: x * (2 if {1} == Own({2}) else 3),
}
wrong = []
for name, program in PROGRAMS.items():
    torch.compiler.reset()
    if not torch.equal(torch.compile(program)(x, Left(), Right()), program(x, Left(), Right())):
        wrong.append(name)
if wrong:
    raise SystemExit(f"torch {torch.__version__}: the left operand's method is used for {', '.join(wrong)}")

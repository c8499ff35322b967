"""A dict or set that changes its size in a loop is refused by Python, and a list that is written while it is reversed is read as it is
then; compiled, the loop goes on with what was there before. torch 2.11."""

import torch

x = torch.ones(2)


def dict_grows(x, values):
    for key in values:
        values[key + "x"] = 1
        x = x + 1
    return x


def set_grows(x, values):
    for member in values:
        values.add(member + 10)
        x = x + 1
    return x


def list_is_written(x, values):
    seen = []
    for value in reversed(values):
        values[0] = 9
        seen.append(value)
    return x + 1, seen


def outcome(program, values):
    torch._dynamo.reset()
    try:
        return str(program(x, values))
    except Exception as error:
        return type(error).__name__


found = []
for program, make in ((dict_grows, lambda: {"a": 1}), (set_grows, lambda: {1}), (list_is_written, lambda: [1, 2, 3])):
    if outcome(program, make()) != outcome(torch.compile(program), make()):
        found.append(program.__name__)
if found:
    raise SystemExit(f"torch {torch.__version__}: not as in eager: {', '.join(found)}")

"""A size or an argument that became symbolic, in an f-string with a format: Dynamo fails, or returns the number (2.11). pytorch#197093."""

import torch


def sizes(x):
    return x * 2, f"{x.shape[0]:d}"


def argument(x, number):
    return x * 2, f"{number:d}"


wrong = []
try:
    text = torch.compile(sizes, backend="eager", dynamic=True)(torch.ones(3, 4))[1]
    if text != "3":
        wrong.append(f"a size is {text!r}")
except Exception as error:
    wrong.append(f"a size: {str(error).splitlines()[0]}")
compiled = torch.compile(argument, backend="eager")
try:
    texts = [compiled(torch.ones(3), number)[1] for number in (3, 5)]
    if texts != ["3", "5"]:
        wrong.append(f"an argument is {texts!r}")
except Exception as error:
    wrong.append(f"an argument: {str(error).splitlines()[0]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

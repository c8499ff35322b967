"""torch.compiler.assume_constant_result: of a set, a function, a method of an object that is made inside, and of a refusal, an internal error."""

import torch


@torch.compiler.assume_constant_result
def numbers():
    return {1, 2}


@torch.compiler.assume_constant_result
def function():
    return torch.sin


@torch.compiler.assume_constant_result
def refuses():
    raise ValueError("no number")


class Settings:
    def __init__(self):
        self.size = 3

    @torch.compiler.assume_constant_result
    def asked(self):
        return self.size


def caught():
    try:
        return refuses()
    except ValueError:
        return 7


ASKED = {
    "a set": lambda x: x * len(numbers()),
    "a function": lambda x: function()(x),
    "a refusal": lambda x: x * caught(),
    "of a new object": lambda x: x * Settings().asked(),
}
x = torch.ones(2)
wrong = []
for name, program in ASKED.items():
    torch.compiler.reset()
    try:
        if not torch.equal(torch.compile(program, backend="eager")(x), program(x)):
            wrong.append(f"{name}: another value")
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

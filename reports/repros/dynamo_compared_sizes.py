"""max and min of a symbolic size and a float give a float where Python gives the int; a size in a range is refused."""

import torch

PROGRAMS = {
    "max": lambda x: max(x.shape[0], 3.5),
    "min": lambda x: min(x.shape[0], 99.5),
    "max of a list": lambda x: max([x.shape[0], 3.5]),
    "in a range": lambda x: 2 if x.shape[0] in range(10, 16) else 3,
}
wrong = []
for name, program in PROGRAMS.items():
    torch.compiler.reset()

    def both(x, program=program):
        return program(x), x + 1

    compiled = torch.compile(both, dynamic=True)
    for length in (14, 15):
        x = torch.ones(length)
        try:
            got, want = compiled(x)[0], program(x)
            if type(got) is not type(want) or got != want:
                wrong.append(f"{name} ({got!r}, not {want!r})")
        except Exception as error:
            wrong.append(f"{name} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(dict.fromkeys(wrong))}")

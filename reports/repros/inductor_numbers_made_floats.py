"""Numbers that change from call to call and become floats on the way: remainders, bits and powers of negative floats do not compile."""

import torch

x = torch.ones(2)
PROGRAMS = {
    "(k % 3) * 1.5": (lambda x, k: x * ((k % 3) * 1.5), (5, 7, 8)),
    "v % 2": (lambda x, v: x + v % 2, (5.25, 7.5, -8.75)),
    "float(k & 3)": (lambda x, k: x + float(k & 3), (5, 7, 8)),
    "v ** 2": (lambda x, v: x * v**2, (5.0, -7.0, -2.0)),
}
wrong = []
for name, (program, numbers) in PROGRAMS.items():
    torch.compiler.reset()
    compiled = torch.compile(program)
    try:
        if any(not torch.allclose(compiled(x, n), program(x, n)) for n in numbers):
            wrong.append(f"{name}: another result")
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

"""Powers whose base or exponent is a number that the caller gives, with dynamic=True: refused."""

import torch

x = torch.rand(3) + 1
PROGRAMS = {
    "a number to the power of a tensor with gradients": (lambda x, k: k**x, x.clone().requires_grad_(), 2),
    "a tensor with gradients to the power of a number": (lambda x, k: x**k, x.clone().requires_grad_(), 3),
    "the square of a negative float": (lambda x, k: x * k**2, x, -7.25),
    "the inverse of a negative integer": (lambda x, k: x * k**-1, x, -7),
}
wrong = []
for name, (program, given, number) in PROGRAMS.items():
    torch.compiler.reset()
    try:
        torch.testing.assert_close(torch.compile(program, dynamic=True)(given, number), program(given, number))
    except Exception as error:
        wrong.append(f"{name} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

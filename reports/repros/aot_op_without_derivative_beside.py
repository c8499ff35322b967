"""`x // 0.3`, heaviside or an incomplete gamma function beside a loss: eager goes backward through the loss, the compiled call fails, since the
backward of all results is traced. The gradient of attention inside of the program is the same (pytorch#148856, #181177)."""

import torch


def attention(x):
    value = torch.nn.functional.scaled_dot_product_attention
    return torch.func.grad(lambda inner: value(inner, inner, inner).sum())(x)


programs = {
    "floor division": lambda x: ((x * x).sum(), x // 0.3),
    "heaviside": lambda x: ((x * x).sum(), torch.heaviside(x, x)),
    "gammainc": lambda x: ((x * x).sum(), torch.special.gammainc(x, x)),
    "attention": lambda x: ((x * x).sum(), attention(x)),
}
wrong = []
for name, program in programs.items():
    torch._dynamo.reset()
    x = torch.rand(1, 1, 4, 4, requires_grad=True)
    program(x)[0].backward()  # eager
    try:
        torch.compile(program, backend="aot_eager")(x)[0].backward()
    except Exception as error:
        wrong.append(f"{name}: {str(error).splitlines()[1]}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

"""unique and unique_consecutive of columns: the strides that Inductor knows of the result are not those that it has."""

import torch

torch._dynamo.config.capture_dynamic_output_shape_ops = True
x = torch.tensor([[1.0, 1, 2, 2, 3], [0, 0, 1, 1, 1], [4, 4, 4, 4, 4]])
wrong = []
for name in ("unique", "unique_consecutive"):
    torch.compiler.reset()

    def program(x, function=getattr(torch, name)):
        return function(x, dim=1) * 2

    try:
        if not torch.equal(torch.compile(program)(x), program(x)):
            wrong.append(name)
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")

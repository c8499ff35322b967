"""A mode that the program sets and leaves set is lost when it is compiled; and what inference mode made is no inference tensor."""

import torch

x = torch.ones(2, requires_grad=True)


def dtype_left_set(x):
    torch.set_default_dtype(torch.float64)
    return x * 2


def gradients_left_off(x):
    torch._C._set_grad_enabled(False)
    return x * 2


def inference_inside(x):
    with torch.inference_mode():
        y = x * 2
    return y


def after(program) -> tuple[object, ...]:
    torch._dynamo.reset()
    result = program(x)
    said = (torch.get_default_dtype(), torch.is_grad_enabled(), result.is_inference())
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    return said


found = []
for program in (dtype_left_set, gradients_left_off, inference_inside):
    if (want := after(program)) != (got := after(torch.compile(program))):
        found.append(f"{program.__name__}: {got}, eager {want}")
if found:
    raise SystemExit(f"torch {torch.__version__}: " + "; ".join(found))

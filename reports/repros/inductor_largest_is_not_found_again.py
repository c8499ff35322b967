"""In bfloat16 and float16 a row has no element that equals its largest or smallest one, and the gradient that falls on it is NaN: the
comparison is made with numbers that were not rounded. See pytorch#195214."""

import torch


def largest(x):
    y = x * 1.1
    return (y == y.amax(1, keepdim=True)).any(1)


def smallest(x):
    y = x * 1.1 + 0.1
    return (y <= y.amin(1, keepdim=True)).any(1)


def gathered(x):
    y = x * 1.1
    return y.gather(1, y.argmax(1, keepdim=True)) == y.amax(1, keepdim=True)


def gradient_of_smallest(x):
    x = x.clone().requires_grad_()
    (x * 1.1).amin(1).sum().backward()
    return x.grad.isnan().logical_not()


def gradient_of_norm(x):
    x = x.clone().requires_grad_()
    torch.linalg.vector_norm(x * 1.1, float("inf"), 1).sum().backward()
    return x.grad.isnan().logical_not()


found = []
for dtype in (torch.bfloat16, torch.float16):
    x = torch.tensor([0.37 * number % 3.1 - 1.5 for number in range(64)]).expand(4, 64).to(dtype).clone()
    for call in (largest, smallest, gathered, gradient_of_smallest, gradient_of_norm):
        torch._dynamo.reset()
        if call(x).all() and not torch.compile(call)(x).all():
            found.append(f"{call.__name__} ({dtype})")
if found:
    raise SystemExit(f"torch {torch.__version__}: true in eager, false compiled: {', '.join(found)}")

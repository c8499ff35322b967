"""`torch._assert_async` without a message is dropped: what is asserted does not hold, eager raises, the compiled program does not. With a message
it is kept."""

import torch


def of_input(x):
    torch._assert_async(x[0])
    return x + 1


def of_sum(x):
    torch._assert_async(x.sum() > 5)
    return x + 1


def of_sum_with_message(x):
    torch._assert_async(x.sum() > 5, "too small")
    return x + 1


def refuses(run):
    try:
        run(torch.zeros(3))
    except RuntimeError:
        return True
    return False


lost = []
for program in (of_input, of_sum, of_sum_with_message):
    torch._dynamo.reset()
    if refuses(program) and not refuses(torch.compile(program, backend="aot_eager")):
        lost.append(program.__name__)
if lost:
    raise SystemExit(f"torch {torch.__version__}: lost {', '.join(lost)}")

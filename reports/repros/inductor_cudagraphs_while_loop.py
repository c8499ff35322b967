"""A while_loop under CUDA graphs: Inductor loses track of who owns its storage. Needs a GPU."""

import torch
from torch._higher_order_ops import while_loop


def loop(x):
    def small(turns, x):
        return (x.sum() < 40.0) & (turns < 12)

    def grow(turns, x):
        return turns + 1, x * 1.5

    return while_loop(small, grow, (torch.zeros((), dtype=torch.int64, device=x.device), x.clone()))


compiled = torch.compile(loop, mode="reduce-overhead")
x = torch.rand(9, device="cuda")
try:
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        compiled(x)
except RuntimeError as error:
    raise SystemExit(f"RuntimeError: {str(error).splitlines()[0]}") from None

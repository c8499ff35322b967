"""An optimizer of the user's own has a method `_init_group` that counts: the compiled step keeps the numbers of the first call. No error."""

import torch
from torch import nn


class Counting(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    def _init_group(self, group, wanted, counts):
        for parameter in group["params"]:
            if parameter.grad is not None:
                state = self.state[parameter]
                state["count"] = state.get("count", 0) + 1
                wanted.append(parameter)
                counts.append(state["count"])
        return len(wanted) > 1

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            wanted, counts = [], []
            several = self._init_group(group, wanted, counts)
            for parameter, count in zip(wanted, counts, strict=True):
                parameter.sub_(parameter.grad, alpha=group["lr"] * count * (1 if several else 10))


told = []
for compiled in (False, True):
    parameters = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))]
    optimizer = Counting(parameters, lr=0.1)
    step = torch.compile(optimizer.step, backend="eager") if compiled else optimizer.step
    for turn in range(4):
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        if turn == 3:
            parameters[0].grad = None
        step()
    told.append([round(float(parameter[0].detach()), 4) for parameter in parameters])
if told[0] != told[1]:
    raise SystemExit(f"torch {torch.__version__}: eager {told[0]}, compiled {told[1]}")

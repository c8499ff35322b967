"""The names of a module's state dict are those of the first call as long as there are as many."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.named = torch.nn.ModuleDict({"left": torch.nn.Linear(2, 2), "right": torch.nn.Linear(2, 2)})


def program(x, model):
    return list(model.state_dict()), x + 1


x, model = torch.ones(2), Model()
compiled = torch.compile(program, backend="eager")
compiled(x, model)
model.named["middle"] = model.named.pop("right")
seen, expected = compiled(x, model)[0], program(x, model)[0]
print(f"names: {seen}, eager {expected}")
raise SystemExit(seen != expected)

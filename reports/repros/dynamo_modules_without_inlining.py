"""With `inline_inbuilt_nn_modules` switched off: an index behind the end of a ModuleList that the program catches, the parameters of a Sequential
by name, a layer of a list that is replaced between calls."""

import torch
from torch import nn

torch._dynamo.config.inline_inbuilt_nn_modules = False


class Asked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Identity(), nn.Tanh()])
        self.line = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


class Behind(Asked):
    def forward(self, x):
        try:
            self.layers[3]
        except IndexError:
            x = x * 2
        return self.layers[-1](x)


class Named(Asked):
    def forward(self, x):
        return x + 1, [name for name, _ in self.line.named_parameters(prefix="line")]


class Replaced(Asked):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


wrong = []
for kind in (Behind, Named, Replaced):
    torch._dynamo.reset()
    module, x = kind(), torch.ones(2)
    compiled = torch.compile(module, backend="eager")
    try:
        same = str(compiled(x)) == str(module(x))
        module.layers[1] = nn.ReLU()
        same = same and str(compiled(x)) == str(module(x))
    except Exception as error:
        same, _ = False, error
    if not same:
        wrong.append(kind.__name__)
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")

"""With `freezing`, a constant after a convolution or a linear layer goes into its weight, and the program gives other numbers: two layers that
are each multiplied with a number of their own get the same number; a constant that has one element for each column (or row) is taken for one
for each channel; in a transposed convolution the channels of the input are scaled; a sum that is wider than the layer is rounded to the layer's
dtype; a product that is reshaped to a column keeps one column."""

import torch
from torch import nn
from torch._inductor import config

config.freezing = config.enable_linear_binary_folding = True
torch.manual_seed(0)
R, BF16 = torch.randn, torch.bfloat16


class Program(nn.Module):
    def __init__(self, forward, layers, constant=None):
        super().__init__()
        self.layers, self.program = nn.ModuleList(layers), forward
        self.constant = nn.Parameter(R(1) if constant is None else constant)

    def forward(self, x):
        return self.program(x, self.constant, *self.layers)


def numbers(x, constant, first, second):
    return first(x) * 2.0, second(x) * 3.0


def times(x, constant, layer):
    return layer(x) * constant


def plus(x, constant, layer):
    return layer(x) + constant


def column(x, constant, layer):
    return layer(x).reshape(-1, 1) * constant


def wider(x, constant, layer):
    return (layer(x) + constant).double()


images = R(2, 2, 5, 5)
programs = {
    "a number for each of two layers": (Program(numbers, [nn.Conv2d(2, 3, 3), nn.Conv2d(2, 3, 3)]), images),
    "one for each column, times": (Program(times, [nn.Conv2d(2, 3, 3)], R(1, 3)), images),
    "one for each column, plus": (Program(plus, [nn.Conv2d(2, 3, 3)], R(1, 3)), images),
    "one for each row of volumes": (Program(plus, [nn.Conv3d(2, 3, 3)], R(1, 3, 1)), R(2, 2, 5, 5, 5)),
    "transposed": (Program(times, [nn.ConvTranspose2d(3, 3, 3)], R(1, 3, 1, 1)), R(2, 3, 4, 4)),
    "transposed to more channels": (Program(times, [nn.ConvTranspose2d(3, 4, 3)]), R(2, 3, 4, 4)),
    "reshaped to a column": (Program(column, [nn.Linear(5, 4)], R(4)), R(6, 5)),
    "wider than the layer": (Program(wider, [nn.Conv2d(2, 3, 3).to(BF16)], R(3, 1, 1) + 1000), images.to(BF16)),
}
wrong = 0
for name, (program, x) in programs.items():
    torch._dynamo.reset()
    with torch.no_grad():
        expected = program.eval()(x)
        try:
            got = torch.compile(program)(x)
        except Exception as error:
            wrong += 1
            print(f"{name}: {type(error).__name__}")
            continue
    pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
    bad = any(a.shape != b.shape or not torch.allclose(a, b, rtol=1e-3, atol=1e-2) for a, b in pairs)
    wrong += bad
    print(f"{name}: {'WRONG' if bad else 'right'}")
raise SystemExit(bool(wrong))

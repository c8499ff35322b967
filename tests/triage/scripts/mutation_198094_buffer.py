"""pytorch#198094: the same with a module's buffer that is reset."""

import torch


class Window(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.arange(4.0))

    def forward(self, x):
        full = self.buf.slice_scatter(x, 0, 2, 4)
        self.buf.zero_()
        return full


a, b = Window(), Window()
x = torch.tensor([7.0, 8.0])
with torch.no_grad():
    torch.testing.assert_close(torch.compile(b)(x), a(x))

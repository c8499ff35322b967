"""pytorch#193581: conv2d, then index_select of its rows."""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.register_buffer("pick", torch.tensor([0, 2, 4, 5]))

    def forward(self, x):
        return torch.index_select(self.conv(x), 2, self.pick)


torch.manual_seed(0)
m = Net().eval()
x = torch.randn(2, 3, 8, 8)
with torch.no_grad():
    want = m(x)
    got = torch.compile(m)(x)
torch.testing.assert_close(got, want)

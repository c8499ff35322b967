"""pytorch#193581: a convolution, then columns of the image by constant indices: the C++ does not compile."""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.register_buffer("columns", torch.tensor([0, 2, 4, 6]))

    def forward(self, x):
        return torch.index_select(self.conv(x).relu(), 3, self.columns)


torch.manual_seed(0)
net, x = Net().eval(), torch.randn(2, 3, 8, 8)
with torch.no_grad():
    torch.testing.assert_close(torch.compile(net)(x), net(x))

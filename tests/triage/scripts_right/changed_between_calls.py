# Ordinary changes of the world between two calls: each is guarded and seen.
import torch

GAIN = 1.0


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) * self.scale * GAIN


net = Net()
c = torch.compile(net)
x = torch.ones(1, 2)
torch.testing.assert_close(c(x), net(x))
net.scale = 5.0
torch.testing.assert_close(c(x), net(x))
GAIN = 3.0
torch.testing.assert_close(c(x), net(x))
net.inner = torch.nn.Linear(2, 2)
torch.testing.assert_close(c(x), net(x))
with torch.no_grad():
    net.inner.weight.mul_(2)
torch.testing.assert_close(c(x), net(x))
net.eval()
assert not c(x).isnan().any() and c(x.repeat(3, 1)).shape == (3, 2)

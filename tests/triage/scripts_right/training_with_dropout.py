# Random numbers differ from eager's by design; what must hold is the rate, the scale and one mask for both directions.
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Dropout(0.25))
compiled = torch.compile(net)
drop = torch.compile(torch.nn.Dropout(0.25))
x = torch.ones(200, 64, requires_grad=True)
y = drop(x)
y.sum().backward()
rate = (y == 0).float().mean().item()
same_mask = torch.equal(y.detach(), x.grad)
values = set(y.detach().unique().tolist())
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = compiled(torch.ones(32, 64)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
ok = abs(rate - 0.25) < 0.03 and same_mask and len(values) == 2 and losses[-1] < losses[0]
print(f"rate {rate:.3f}, one mask: {same_mask}, losses {losses[0]:.4f} -> {losses[-1]:.4f}")
sys.exit(not ok)

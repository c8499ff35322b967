"""No report known: ahead of time, positions of the maximum of a transposed and a plain input are wrong (pytorch#178964)."""

import tempfile
from pathlib import Path

import torch


class Net(torch.nn.Module):
    def forward(self, a, b):
        return (a.T + b).max(dim=1).indices


torch.manual_seed(0)
net, inputs = Net(), (torch.randn(8, 8), torch.randn(8, 8))
with tempfile.TemporaryDirectory() as folder:
    program = torch.export.export(net, inputs)
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(Path(folder, "net.pt2")))
    loaded = torch._inductor.aoti_load_package(package)
    assert torch.equal(loaded(*inputs), net(*inputs))

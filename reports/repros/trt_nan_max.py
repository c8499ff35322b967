"""The largest of values with a NaN among them is NaN in PyTorch, and a number in an engine. Needs a GPU."""

import torch
import torch_tensorrt


class Largest(torch.nn.Module):
    def forward(self, x):
        return (x * 2.0).amax()


x = torch.randn(40, device="cuda")
x[7] = float("nan")
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Largest(), (x,)), inputs=[x], min_block_size=1)
found = compiled(x).item()
raise SystemExit(f"{found}, eager gives nan" if found == found else 0)

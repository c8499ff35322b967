"""The torch.compile door loses a frozen weight of an embedding. Needs a GPU."""

import torch
from torch_tensorrt.dynamo.backend import torch_tensorrt_backend


class Embed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Parameter(torch.randn(29, 20))
        self.positions = torch.nn.Parameter(torch.randn(40, 20))

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        return torch.nn.functional.embedding(ids, self.tokens) + torch.nn.functional.embedding(positions, self.positions)


module = Embed().cuda().eval()
ids = torch.randint(0, 29, (3, 7), device="cuda")
with torch.no_grad():
    try:
        torch.compile(module, backend=torch_tensorrt_backend, options={"min_block_size": 1})(ids)
    except AttributeError as error:
        raise SystemExit(f"AttributeError: {error}") from None

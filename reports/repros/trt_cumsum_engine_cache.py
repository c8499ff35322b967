"""A cumulative sum with the engine cache on: the engine that is to be kept is None. Needs a GPU."""

import torch
import torch_tensorrt


class Sum(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x * 0.5 + 0.1, dim=-1)


x = torch.randn(4, 67, device="cuda")
try:
    torch_tensorrt.dynamo.compile(
        torch.export.export(Sum(), (x,)),
        inputs=[x],
        min_block_size=1,
        immutable_weights=False,
        cache_built_engines=True,
        reuse_cached_engines=True,
    )
except TypeError as error:
    raise SystemExit(f"TypeError: {str(error).splitlines()[0]}") from None

"""A cumulative sum, once as it is and once with the engine cache on (2.11). In the suite it ends in an illegal memory access, and with
the engine cache in an engine that is None; alone, on an H200, it passed: whoever has such a machine for longer, look here. Needs a GPU."""

import torch
import torch_tensorrt


class Sum(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x * 0.5 + 0.1, dim=-1)


x = torch.randn(4, 67, device="cuda")
settings = {"min_block_size": 1, "immutable_weights": False}
for cached in (False, True):
    try:
        program = torch.export.export(Sum(), (x,))
        compiled = torch_tensorrt.dynamo.compile(
            program, inputs=[x], cache_built_engines=cached, reuse_cached_engines=cached, **settings
        )
        for _ in range(30):
            compiled(x)
        torch.cuda.synchronize()
        with torch_tensorrt.runtime.enable_cudagraphs(compiled) as recorded:
            for _ in range(30):
                recorded(x)
        torch.cuda.synchronize()
    except (TypeError, RuntimeError) as error:
        raise SystemExit(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None

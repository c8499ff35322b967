"""torch.cond under `enable_cudagraphs`: the branch is decided on the host, and recording fails. Needs a GPU."""

import torch
import torch_tensorrt


class Branch(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0.0, lambda x: x.sin() * 2.0, lambda x: x.cos() - 1.0, (x,))


x = torch.randn(4, 13, device="cuda")
compiled = torch_tensorrt.dynamo.compile(torch.export.export(Branch(), (x,)), inputs=[x], min_block_size=1)
with torch_tensorrt.runtime.enable_cudagraphs(compiled) as recorded:
    try:
        recorded(x)
        torch.cuda.synchronize()
    except RuntimeError as error:
        raise SystemExit(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None

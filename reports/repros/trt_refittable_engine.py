"""An engine whose weights can be refitted, which the engine cache needs, is not built on a GPU (2.14). Needs a GPU."""

import torch
import torch_tensorrt


class Chain(torch.nn.Module):
    def forward(self, x):
        return (x * 2.0 - 1.0).relu()


x = torch.randn(5, 33, device="cuda")
program = torch.export.export(Chain(), (x,))
try:
    compiled = torch_tensorrt.dynamo.compile(
        program, inputs=[x], min_block_size=1, immutable_weights=False, cache_built_engines=True, reuse_cached_engines=True
    )
    engines = [name for name, _ in compiled.named_children() if "_run_on_acc" in name]
except (RuntimeError, TypeError) as error:
    raise SystemExit(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
raise SystemExit("no engine: the original module came back" if not engines else 0)

"""Torch-TensorRT 2.14.0 writes a strided cache update to consecutive positions.

`cache[:, :, 0:8:2] = steps` becomes an `IKVCacheUpdateLayer`, which knows a start and a length and no step: slots 0, 1, 2, 3 are
written, not 0, 2, 4, 6. The source has a note of it. Without a GPU the eligibility check shows it; with one, the values do."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

import torch_tensorrt
from torch_tensorrt.dynamo.conversion.impl.slice_scatter import KVWriteStatus, _kv_eligible, resolve_slice_scatter_write


class Strided(torch.nn.Module):
    def forward(self, cache, steps):
        cache.copy_(torch.slice_scatter(cache, steps, dim=2, start=0, end=8, step=2))
        return cache * 2.0


start, end, step, status = resolve_slice_scatter_write((1, 2, 12, 8), 2, 0, 8, 2)
taken = status is KVWriteStatus.OK and _kv_eligible((1, 2, 12, 8), 2, start, end - start)[0]
print(f"step {step} is {'taken' if taken else 'refused'} by the path that writes consecutive positions")
if torch.cuda.is_available():
    cache, steps = torch.zeros(1, 2, 12, 8).cuda(), torch.ones(1, 2, 4, 8).cuda()
    program = torch.export.export(Strided(), (cache, steps))
    compiled = torch_tensorrt.dynamo.compile(program, inputs=[cache, steps], min_block_size=1)
    mine, eagers = cache.clone(), cache.clone()
    compiled(mine, steps), Strided()(eagers, steps)
    print("written:", mine[0, 0, :, 0].nonzero().flatten().tolist(), "eager writes:", eagers[0, 0, :, 0].nonzero().flatten().tolist())
    taken = not torch.equal(mine, eagers)
raise SystemExit("a strided write becomes a contiguous one" if taken else 0)

"""Torch-TensorRT 2.14.0 overwrites an input that the program only reads.

`torch.slice_scatter(cache, step, 2, 3, 4) * 2` does not write to `cache`. The converter takes every slice_scatter of a 4-d input on dim 2
for a cache update and emits the layer that writes in place, whether or not the program copies the result back. Without a GPU the
network's aliased output shows it; with one, the caller's cache does."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

import torch_tensorrt
from torch_tensorrt.dynamo.conversion._TRTInterpreter import TRTInterpreter


class Functional(torch.nn.Module):
    def forward(self, cache, step):
        return torch.slice_scatter(cache, step, dim=2, start=3, end=4) * 2.0


device = "cuda" if torch.cuda.is_available() else "cpu"
cache, step = torch.zeros(1, 2, 12, 8, device=device), torch.ones(1, 2, 1, 8, device=device)
program = torch.export.export(Functional(), (cache, step)).run_decompositions(torch_tensorrt.dynamo.lowering.get_decompositions())
if torch.cuda.is_available():
    compiled = torch_tensorrt.dynamo.compile(program, inputs=[cache, step], min_block_size=1)
    compiled(cache, step)
    print(f"sum of the caller's cache: {cache.sum().item()}, it was 0.0 and nobody wrote to it")
    wrong = bool(cache.any())
else:
    graph = program.module()
    for node in [node for node in graph.graph.nodes if node.target == "_guards_fn"]:
        graph.graph.erase_node(node)
    interpreter = TRTInterpreter(graph, [torch_tensorrt.Input.from_tensor(t) for t in (cache, step)])
    interpreter._construct_trt_network_def()
    print("outputs that are written into inputs:", interpreter._aliased_io)
    wrong = bool(interpreter._aliased_io)
raise SystemExit("an input that is only read is written to" if wrong else 0)

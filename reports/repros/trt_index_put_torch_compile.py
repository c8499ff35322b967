"""`index_put` through the torch.compile door: conversion fails, and the graph comes back uncompiled. Needs a GPU."""

import logging

import torch
from torch_tensorrt.dynamo.backend import torch_tensorrt_backend


class Put(torch.nn.Module):
    def forward(self, x, index, values):
        return torch.index_put(x, (index,), values)


said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("torch_tensorrt").addHandler(handler)
x, values = torch.randn(9, 6, device="cuda"), torch.randn(4, 6, device="cuda")
index = torch.tensor([1, 3, 5, 7], device="cuda")
torch.compile(Put(), backend=torch_tensorrt_backend, options={"min_block_size": 1})(x, index, values)
failed = [text for text in said if "conversion failed" in text]
raise SystemExit(failed[0].splitlines()[0] if failed else 0)

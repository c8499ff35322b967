"""Torch-TensorRT 2.14 serves an engine that accumulates in float16 where `use_fp32_acc=True` asks for float32: the setting changes the network
of a float16 product, and is neither part of the engine cache's key nor among the settings that a cached engine is compared by.

Needs no GPU: the key and the comparison are asked."""

import torch

if not torch.cuda.is_available():
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.current_device = lambda: 0

import torch_tensorrt
from torch_tensorrt.dynamo import CompilationSettings
from torch_tensorrt.dynamo._engine_cache import BaseEngineCache
from torch_tensorrt.dynamo._settings import settings_are_compatible


class Product(torch.nn.Module):
    def forward(self, x, y):
        return x @ y


x = torch.randn(8, 8, dtype=torch.float16)
specs = [torch_tensorrt.Input(shape=(8, 8), dtype=torch.float16)] * 2
graph = torch.export.export(Product(), (x, x)).module()
plain, wide = (CompilationSettings(immutable_weights=False, use_fp32_acc=wide) for wide in (False, True))
keys = {BaseEngineCache.get_hash(graph, specs, settings) for settings in (plain, wide)}
compatible = settings_are_compatible(plain, wide)[0]
print(f"use_fp32_acc off and on: {len(keys)} key(s), compatible: {compatible}")
raise SystemExit("one engine for both" if len(keys) == 1 and compatible else 0)

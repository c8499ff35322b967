"""Attention with a KV cache: a small token model through AutoDeploy's cache insertion, then prompt and decoding steps.

What the cache holds is right if a prompt at once, the same prompt token by token, and a prompt continued after other tokens
were written behind it all give what the model gives without a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from conformance import oracle
from conformance.backends.autodeploy import fake_cuda
from conformance.backends.autodeploy.graph import custom_ops
from conformance.backends.autodeploy.loader import Loaded
from conformance.backends.autodeploy.passes import listening
from conformance.backends.autodeploy.seam import caches_of, resources_of
from conformance.errors import UsageError

VOCABULARY, LONGEST = 64, 32


class TokenModel(nn.Module):
    """Embedding, causal attention with grouped heads, projection."""

    def __init__(self, heads: int = 4, kv_heads: int = 2, head: int = 8) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head = heads, kv_heads, head
        width = heads * head
        self.embed = nn.Embedding(VOCABULARY, width)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, kv_heads * head, bias=False) for _ in range(2))

    def forward(self, input_ids: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids)
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, self.heads, self.head)
        k, v = (project(x).view(batch, length, self.kv_heads, self.head) for project in (self.k, self.v))
        mixed = torch.ops.auto_deploy.torch_attention(q, k, v, is_causal=True, layout="bsnd")
        return self.o(mixed.reshape(batch, length, -1))


@dataclass
class CacheReport:
    kernels: dict[str, int]
    matches: int
    caches: int
    differences: dict[str, list[oracle.Difference]] = field(default_factory=dict)


def decode(loaded: Loaded, backend: str = "torch", device: str = "cpu", batch: int = 3, length: int = 9) -> CacheReport:
    """All three ways of filling the cache, each against the model without one."""
    torch.manual_seed(0)
    with loaded.active(), fake_cuda.answers(), torch.inference_mode(), listening():
        model = TokenModel().to(device).eval()
        tokens = torch.randint(0, VOCABULARY, (batch, length), device=device)
        positions = torch.arange(length, device=device).expand(batch, length)
        plain = model(tokens, positions)
        cm, gm = _inserted(loaded, model, (tokens, positions), backend, device, batch)
        caches = _allocate(loaded, cm)
        info = gm.meta[loaded.seam.meta_key][loaded.seam.history_key]["insert_cached_attention"]
        report = CacheReport(custom_ops(gm), int(info.num_matches), int(caches))
        call = _caller(cm, gm)
        report.differences["prompt at once"] = _compare(call(tokens, 0), plain)
        for cache in caches_of(cm).values():
            cache.fill_(7.0)  # what the prompt left must not help
        report.differences["token by token"] = _compare(_steps(call, tokens, 0), plain)
        call(torch.randint(0, VOCABULARY, (batch, 2), device=device), length - 2)
        report.differences["continued after other tokens"] = _compare(
            _steps(call, tokens, length - 2), plain[:, length - 2 :]
        )
    return report


def _inserted(loaded: Loaded, model: nn.Module, inputs: Any, backend: str, device: str, batch: int) -> tuple[Any, Any]:
    dynamic = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    named = dict(zip(("input_ids", "position_ids"), inputs, strict=True))  # AutoDeploy's models are called by keyword
    shapes = dict.fromkeys(named, dynamic)
    gm = loaded.seam.export(model, args=(), kwargs=named, clone=True, dynamic_shapes=shapes)
    config = loaded.seam.kv_cache_config(
        tokens_per_block=LONGEST, max_tokens=batch * LONGEST, free_gpu_memory_fraction=0.0
    )
    interface = loaded.seam.sequence_interface
    try:
        cm = interface(
            max_seq_len=LONGEST,
            max_batch_size=batch,
            max_num_tokens=batch * (LONGEST + 1),
            device=device,
            kv_cache_config=config,
        )
    except TypeError as error:
        raise UsageError(
            f"{loaded.found}: the sequence interface takes other arguments than this suite knows: {error}"
        ) from None
    settings = {"insert_cached_attention": {"stage": "cache_init", "backend": backend}}
    gm = loaded.seam.optimizer(None, settings)(cm, gm)
    return cm, gm.to(device)


def _allocate(loaded: Loaded, cm: Any) -> int:
    """AutoDeploy's manager of paged caches is compiled; without it, each cache allocates itself, as unpaged ones do anyway."""
    if loaded.seam.built:
        return int(cm.initialize_resources())
    cm.info.to(cm.device)
    caches = caches_of(cm)
    for name, handler in resources_of(cm).items():
        caches[name] = handler.allocate(cm.info)
    return len(caches)


def _caller(cm: Any, gm: Any) -> Callable[[torch.Tensor, int], torch.Tensor]:
    def call(tokens: torch.Tensor, position: int) -> torch.Tensor:
        batch, length = tokens.shape
        cm.info.nest_sequences(
            tokens.flatten().tolist(),
            cu_seqlen=list(range(0, batch * length + 1, length)),
            input_pos=[position] * batch,
            cache_loc_per_pool=[list(range(batch))],
            cu_num_pages_per_pool=[list(range(batch + 1))],
            slot_idx=list(range(batch)),
            gather_context_logits=True,
        )
        return torch.stack(cm.info.unnest_sequences(gm(**cm.named_args))).clone()

    return call


def _steps(call: Callable[[torch.Tensor, int], torch.Tensor], tokens: torch.Tensor, start: int) -> torch.Tensor:
    return torch.cat([call(tokens[:, i : i + 1], i) for i in range(start, tokens.shape[1])], dim=1)


def _compare(got: torch.Tensor, want: torch.Tensor) -> list[oracle.Difference]:
    got = got.reshape(want.shape)
    return list(oracle.value_differences("output", got, want))

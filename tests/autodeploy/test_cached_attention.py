"""The KV cache that AutoDeploy inserts, filled in several ways."""

from __future__ import annotations

import pytest
import torch
from cached_attention import decode

BACKENDS = [
    "torch",
    pytest.param("triton", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")),
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_way_of_filling_the_cache_gives_what_no_cache_gives(harness, backend):
    report = decode(harness.loaded, backend, "cpu" if backend == "torch" else "cuda")
    assert report.matches == 1 and report.caches >= 1
    assert "auto_deploy.torch_attention" not in report.kernels
    assert report.differences == {"prompt at once": [], "token by token": [], "continued after other tokens": []}


def test_a_cache_that_loses_what_it_holds_is_seen(harness, monkeypatch):
    module = harness.loaded.module("custom_ops.attention.torch_backend_attention")
    monkeypatch.setattr(module, "_write_generate_kv_cache", lambda k, v, k_cache, v_cache, slot_idx, input_pos: None)
    report = decode(harness.loaded)
    assert report.differences["prompt at once"] == []
    assert report.differences["token by token"] != []

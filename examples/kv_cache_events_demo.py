"""The life of KV-cache blocks as events: created, stored, updated, removed.

These are no CUDA events: they are notes that a KV-cache manager writes for whoever routes requests. TensorRT-LLM's own
manager is used where it can be imported; otherwise a small shim, which says so, plays the same life with the same JSON.

    python examples/kv_cache_events_demo.py [--shim]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import OrderedDict
from typing import Any

Event = dict[str, Any]


class ShimManager:
    """Blocks of `tokens_per_block` tokens, known by the hash of all tokens up to their end; least recently used go first,
    to the second level of the cache, and then for good."""

    def __init__(self, primary: int = 3, secondary: int = 1, tokens_per_block: int = 4) -> None:
        self.primary, self.secondary, self.size = primary, secondary, tokens_per_block
        self.blocks: OrderedDict[int, dict[str, Any]] = OrderedDict()  # hash → level, priority; oldest first
        self.pending: list[Event] = []
        self.count = 0
        self._note({"type": "created", "num_blocks_per_cache_level": [primary, secondary]})

    def add_sequence(self, tokens: list[int], priority: int = 35) -> None:
        """A finished prompt: its full blocks are kept for whoever starts with the same tokens."""
        parent: int | None = None
        new: list[Event] = []
        first_parent: int | None = None
        for start in range(0, len(tokens) - len(tokens) % self.size, self.size):
            block = hash_of(tokens[: start + self.size])
            if block in self.blocks:
                self.blocks.move_to_end(block)  # reused: no event
            else:
                first_parent = parent if not new else first_parent
                self._make_room()
                self.blocks[block] = {"cache_level": 0, "priority": priority}
                ids = [
                    {"type": "unique_token", "token_id": t, "token_extra_id": 0}
                    for t in tokens[start : start + self.size]
                ]
                new.append(
                    {"type": "stored_block", "block_hash": block, "tokens": ids, "cache_level": 0, "priority": priority}
                )
            parent = block
        if new:
            self._note({"type": "stored", "parent_hash": first_parent, "blocks": new})

    def set_priority(self, tokens: list[int], priority: int) -> None:
        block = hash_of(tokens[: len(tokens) - len(tokens) % self.size])
        self._update(block, priority=priority)

    def get_latest_events(self) -> list[Event]:
        events, self.pending = self.pending, []
        return events

    def _make_room(self) -> None:
        level = [[h for h, b in self.blocks.items() if b["cache_level"] == n] for n in (0, 1)]
        if len(level[0]) < self.primary:
            return
        if len(level[1]) >= self.secondary:
            oldest = level[1][0]
            del self.blocks[oldest]
            self._note({"type": "removed", "block_hashes": [oldest]})
        self._update(level[0][0], cache_level=1)

    def _update(self, block: int, **changes: int) -> None:
        said: Event = {"type": "updated", "block_hash": block, "cache_level": None, "priority": None}
        for name, value in changes.items():
            said[name] = {"type": "event_diff", "new_value": value, "old_value": self.blocks[block][name]}
            self.blocks[block][name] = value
        self._note(said)

    def _note(self, data: Event) -> None:
        self.pending.append({"event_id": self.count, "data": data, "window_size": 64})
        self.count += 1


def hash_of(tokens: list[int]) -> int:
    return int.from_bytes(hashlib.sha256(json.dumps(tokens).encode()).digest()[:6], "big")


def shim_life() -> list[Event]:
    manager = ShimManager()
    manager.add_sequence(list(range(8)))  # two blocks
    manager.set_priority(list(range(8)), 80)
    manager.add_sequence([*range(8), 100, 101, 102, 103])  # shares both, stores a third
    manager.add_sequence([200, 201, 202, 203])  # full: the oldest moves to the second level
    manager.add_sequence([300, 301, 302, 303])  # full there too: it is removed
    return manager.get_latest_events()


def real_life() -> list[Event]:
    """The same with TensorRT-LLM's manager: create it, run a prompt through it, free it."""
    import tensorrt_llm
    from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
    from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
    from tensorrt_llm._utils import KVCacheEventSerializer
    from tensorrt_llm.bindings.internal.testing import simulate_prefill_completion_only_use_for_testing
    from tensorrt_llm.llmapi import KvCacheConfig
    from tensorrt_llm.mapping import Mapping
    from tensorrt_llm.sampling_params import SamplingParams

    config = KvCacheConfig(
        free_gpu_memory_fraction=0.1, event_buffer_max_size=1024, enable_block_reuse=True, max_tokens=256
    )
    manager = KVCacheManager(
        kv_cache_config=config,
        kv_cache_type=tensorrt_llm.bindings.internal.batch_manager.CacheType.SELF,
        num_layers=2,
        num_kv_heads=2,
        head_dim=128,
        tokens_per_block=64,
        max_seq_len=1024,
        max_batch_size=1,
        mapping=Mapping(),
    )
    events: list[Event] = []

    def drain() -> None:
        manager.flush_iteration_events()
        time.sleep(0.01)
        events.extend(KVCacheEventSerializer.serialize(manager.get_latest_events(10)))

    drain()
    for index, length in enumerate((5, 130, 200, 250)):  # the last ones do not fit beside the first
        sampling = tensorrt_llm.bindings.SamplingConfig(SamplingParams()._get_sampling_config())
        tokens = [1000 * index + token for token in range(length)]
        request = LlmRequest(
            request_id=index, max_new_tokens=1, input_tokens=tokens, sampling_config=sampling, is_streaming=False
        )
        manager.impl.add_sequence_batch([(request.py_request_id, request.prompt_len, 1)], [request])
        simulate_prefill_completion_only_use_for_testing(request)
        manager.free_resources(request)
        drain()
    return events


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shim", action="store_true", help="do not look for the real manager")
    if parser.parse_args().shim:
        source, events = "the shim, as asked", shim_life()
    else:
        try:
            source, events = "TensorRT-LLM's KVCacheManager", real_life()
        except Exception as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            source, events = f"a shim, since TensorRT-LLM's manager cannot be used here ({why})", shim_life()
    print(f"events of {source}:\n")
    for event in events:
        print(f"{event['event_id']:3}  {event['data']['type']:8} {json.dumps(event['data'])[:150]}")
    kinds = [event["data"]["type"] for event in events]
    print("\n" + ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("created", "stored", "updated", "removed")))


if __name__ == "__main__":
    main()

"""The greatest length of a deque that is passed in is lost: `maxlen` is None, and a full deque grows."""

from collections import deque

import torch


def program(x, queue):
    queue.append(3)
    return x + 1, queue.maxlen, len(queue)


x = torch.ones(3)
seen = torch.compile(program, backend="eager")(x, deque([1, 2], 2))[1:]
expected = program(x, deque([1, 2], 2))[1:]
print(f"maxlen and length: {seen}, eager {expected}")
raise SystemExit(seen != expected)

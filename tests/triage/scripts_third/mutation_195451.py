"""pytorch#195451: a result that is copied into an input comes back as the input itself."""

import torch


def step(cache, new, index):
    updated = torch.index_put(cache, (index,), new)
    cache.copy_(updated)
    return updated


history = []
compiled = torch.compile(step)
for run in (step, compiled):
    cache = torch.zeros(4)
    first = run(cache, torch.ones(2), torch.tensor([3, 1]))
    cache.zero_()
    history.append(first.tolist())
print(history)
raise SystemExit(history[0] != history[1])

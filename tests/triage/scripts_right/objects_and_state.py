import dataclasses

import torch


@dataclasses.dataclass
class Meter:
    total: float = 0.0
    seen: list = dataclasses.field(default_factory=list)

    def update(self, n):
        self.total += n
        self.seen.append(n)


def f(x, meter, table):
    meter.update(x.shape[0])
    table["last"] = x.shape
    return x * meter.total


eager, compiled = (Meter(), {}), (Meter(), {})
g = torch.compile(f)
for n in (2, 3, 2):
    x = torch.ones(n)
    assert torch.equal(f(x, *eager), g(x, *compiled))
assert eager == compiled, (eager, compiled)

"""Micrographs of the backend's own tests."""

from __future__ import annotations

import torch

from conformance.contract import Capture, Contract, Runtime
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph, weight


class Plain(Micrograph):
    """A matmul, a relu and a sum: everything has a converter."""

    dims = {"m": 4}
    inputs = (Tensor("m 8"),)
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.weight = weight(8, 8)

    def forward(self, x):
        return torch.relu(x @ self.weight) + 1.0


class Dynamic(Micrograph):
    """One symbolic dim."""

    dims = {"s": 6}
    inputs = (Tensor("s 8"),)
    contract = Contract(capture=Capture(dynamic=("s",)))

    def forward(self, x):
        return torch.relu(x) * 2.0


class Specialized(Micrograph):
    """A dim that is promised to be symbolic, in a program that fixes it."""

    dims = {"s": 6}
    inputs = (Tensor("s 8"),)
    contract = Contract(capture=Capture(dynamic=("s",)))

    def forward(self, x):
        return x.reshape(2, 3, 8) * 2.0


class Unconverted(Micrograph):
    """An op without a converter, alone."""

    dims = {"m": 4}
    inputs = (Tensor("m"),)
    contract = Contract()

    def forward(self, x):
        return torch.special.bessel_j0(x)


class Between(Micrograph):
    """An op without a converter between ops that have one."""

    dims = {"m": 4}
    inputs = (Tensor("m"),)
    contract = Contract()

    def forward(self, x):
        return torch.relu(torch.special.bessel_j0(x * 2.0)) + x


class AddInput(Micrograph):
    """The smallest input mutation."""

    dims = {"m": 4}
    inputs = (Tensor("m"),)
    contract = Contract(runtime=Runtime(mutates=(0,)))

    def forward(self, x):
        x.add_(1.0)
        return x * 2.0


class CacheWrite(Micrograph):
    """A caller-owned cache, written the way that becomes a KV-cache-update layer."""

    dims = {"h": 2}
    inputs = (Tensor("1 h 12 8"), Tensor("1 h 1 8"))
    contract = Contract(runtime=Runtime(mutates=(0,)))

    def forward(self, cache, step):
        cache.copy_(torch.slice_scatter(cache, step, dim=2, start=3, end=4))
        return cache * 2.0


class StridedWrite(Micrograph):
    """The same with a step, which that layer does not know."""

    dims = {"h": 2}
    inputs = (Tensor("1 h 12 8"), Tensor("1 h 4 8"))
    contract = Contract(runtime=Runtime(mutates=(0,)))

    def forward(self, cache, steps):
        cache.copy_(torch.slice_scatter(cache, steps, dim=2, start=0, end=8, step=2))
        return cache * 2.0


class BufferCache(Micrograph):
    """A cache that the module owns."""

    dims = {"d": 8}
    inputs = (Tensor("1 2 3 d"),)
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.arange(192.0).reshape(1, 2, 12, 8) * 0.01)

    def forward(self, steps):
        self.cache[:, :, 2:5] = steps
        return self.cache.sum(dim=2)


class BufferRead(Micrograph):
    """A buffer that is only read."""

    dims = {"m": 4}
    inputs = (Tensor("m 8"),)
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offset", torch.ones(8))

    def forward(self, x):
        return torch.relu(x) + self.offset


class Average(Micrograph):
    """A buffer that is no cache, over two calls."""

    dims = {"m": 6}
    inputs = (Tensor("m 13"),)
    steps = 2
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.linspace(-1.0, 1.0, 13))

    def forward(self, x):
        self.average.copy_(self.average * 0.9 + x.mean(dim=0) * 0.1)
        return x - self.average, self.average * 1.0


class Softmax(Micrograph):
    """An op whose argument decides what it computes."""

    dims = {"m": 8}
    inputs = (Tensor("m m"),)
    contract = Contract()

    def forward(self, x):
        return torch.softmax(x, dim=1)


class Trained(Micrograph):
    """Asks for a gradient."""

    dims = {"m": 4}
    inputs = (Tensor("m", grad=True),)
    contract = Contract()

    def forward(self, x):
        return x.sin()


class FunctionalWrite(Micrograph):
    """slice_scatter that is not in place: the caller's cache is only read."""

    dims = {"h": 2}
    inputs = (Tensor("1 h 12 8"), Tensor("1 h 1 8"))
    contract = Contract()

    def forward(self, cache, step):
        return torch.slice_scatter(cache, step, dim=2, start=3, end=4) * 2.0


class ReturnedWrite(Micrograph):
    """The same, and what is returned last is the scatter itself."""

    dims = {"h": 2}
    inputs = (Tensor("1 h 12 8"), Tensor("1 h 1 8"))
    contract = Contract()

    def forward(self, cache, step):
        return step * 3.0, torch.slice_scatter(cache, step, dim=2, start=3, end=4)


class Transposed(Micrograph):
    """A view of an input and a permuted result: storage and strides that an engine does not keep."""

    dims = {"m": 4}
    inputs = (Tensor("m 6"),)
    contract = Contract(runtime=Runtime(aliases={0: 0}))

    def forward(self, x):
        return x.t(), (x * 2.0).t()


class Fraction(Micrograph):
    """An integer and a fraction: a float."""

    inputs = (Tensor("4", torch.int64),)
    contract = Contract()

    def forward(self, x):
        return x * 0.5


class Refused(Micrograph):
    """Eager refuses the product of two dtypes, and torch.export does."""

    inputs = (Tensor("2 3 4", torch.float16), Tensor("2 4 5"))
    contract = Contract(runtime=Runtime(raises=True))

    def forward(self, x, y):
        return torch.matmul(x, y)


class ComplexOutput(Micrograph):
    """A complex number comes back."""

    inputs = (Tensor("3", torch.complex64), Tensor("3", torch.complex64))
    contract = Contract()

    def forward(self, x, y):
        return x + y

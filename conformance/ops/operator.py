"""An operator of the database: its dtypes, its samples, and what its documentation leaves open."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from conformance.errors import unknown
from conformance.ops import words
from conformance.ops.seam import DATABASES, database, home_of, seam
from conformance.torch_seam import pytree

DTYPES = {name: getattr(torch, name) for name in words.DTYPES}
DRAWN = 24  # samples that are looked at before some are chosen
LARGEST = 1 << 16  # elements: larger samples cost time and show nothing more

# The values of the result are whatever was in memory.
UNINITIALISED = frozenset(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize_ resize_as_".split()
)
# Which of several equal elements an index names is not specified.
TIES = frozenset("topk sort argsort median nanmedian mode kthvalue".split())
# Which of two zeros of different sign is the smaller is not specified, by C or by PyTorch.
ZEROS_ARE_EQUAL = frozenset(
    "fmin fmax minimum maximum min max amin amax aminmax clamp clamp_min clamp_max cummin cummax".split()
)
# Kernels behind a public operator, which prepares their inputs: they read another layout of them as if it were contiguous, in eager as well.
TAKES_CONTIGUOUS = ("flash_attention_for_cpu",)  # how their names end
# Left out, and why.
LEFT_OUT = {
    "jiterator": "needs a CUDA device",
    "to_sparse": "its result is not strided",
    "sparse.": "takes sparse tensors",
    "masked.": "written in Python in torch.masked: its calls of operators are sampled one by one",
    "nn.functional.scaled_mm": "needs a CUDA device",
    "signal.windows": "written in Python in torch.signal",
    "_segment_reduce": "an internal operator",
}


class TooLarge(Exception):
    """A sample that takes more elements than a sweep can afford."""


@dataclass(frozen=True)
class Operator:
    """One entry of the database. `name` holds the variant: `div.floor_rounding`."""

    info: Any

    @property
    def name(self) -> str:
        variant = self.info.variant_test_name
        return f"{self.info.name}.{variant}" if variant else str(self.info.name)

    def cell_name(self, dtype: str) -> str:
        """The last part of a cell: `ops.div.floor_rounding:float32`."""
        return f"ops.{self.name}:{dtype}"

    def dtypes(self) -> list[str]:
        """The dtypes that the database declares for the CPU, in the order of `DTYPES`."""
        supported = self.info.supported_dtypes("cpu")
        return [
            name for name, dtype in DTYPES.items() if dtype in supported and (self.public() or dtype.is_floating_point)
        ]

    def public(self) -> bool:
        """Is it an operator of torch? Those of the other databases (custom operators, operators that take functions) are examples, whose
        fakes and bodies hold for contiguous floats: other inputs break their own promises."""
        return home_of(self.info)[1] == DATABASES[0]

    def samples(self, dtype: str, grad: bool = False) -> list[Any]:
        """Some of the operator's samples in a dtype, the same in every process."""
        with seeded():
            return list(islice(self.info.sample_inputs("cpu", DTYPES[dtype], requires_grad=grad), DRAWN))

    def error_samples(self) -> list[Any]:
        """Calls that eager refuses."""
        if self.info.error_inputs_func is None:
            return []
        with seeded():
            return [one.sample_input for one in islice(self.info.error_inputs("cpu"), DRAWN)]

    @property
    def function(self) -> Any:
        """A dotted name of torch where that is what is called; the database's own function otherwise."""
        return spelled(f"torch.{self.info.name}", self.info.op) or self.info.op

    @property
    def in_place(self) -> Any:
        """The in-place form; None where there is none."""
        found = self.info.inplace_variant
        if found is None:
            return None
        return spelled(f"torch.Tensor.{self.info.name}_", found) or found

    def takes_out(self) -> bool:
        return bool(self.info.supports_out)

    def differentiable(self, dtype: str) -> bool:
        return bool(self.info.supports_autograd) and DTYPES[dtype] in self.info.supported_backward_dtypes("cpu")

    def elementwise(self) -> bool:
        return isinstance(self.info, (seam.elementwise_unary, seam.elementwise_binary))

    def reduces(self) -> bool:
        return isinstance(self.info, seam.reduction)

    def compares_values(self) -> bool:
        return self.info.name not in UNINITIALISED

    def takes_layouts(self) -> bool:
        return self.public() and not str(self.info.name).endswith(TAKES_CONTIGUOUS)

    def breaks_ties(self) -> bool:
        """Is it for the operator to say which of several equal elements an index names?"""
        return self.info.name in TIES

    def leaves_sign_of_zero_open(self) -> bool:
        return self.info.name in ZEROS_ARE_EQUAL

    def tolerance(self, dtype: str) -> tuple[float, float]:
        """The widest tolerance that the database itself declares for a test of the operator: relative, absolute."""
        found = [(0.0, 0.0)]
        for decorator in self.info.decorators or ():
            for one in getattr(decorator, "decorators", ()):
                if isinstance(one, seam.tolerances) and DTYPES[dtype] in one.d:
                    found.append((one.d[DTYPES[dtype]].rtol, one.d[DTYPES[dtype]].atol))
        return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def spelled(path: str, function: Any) -> str:
    """The dotted path, if it leads to this very function; else nothing."""
    owner: Any = torch
    for part in path.split(".")[1:]:
        owner = getattr(owner, part, None)
    return path if owner is function else ""


class seeded:
    """Inside, random numbers come from one seed; afterwards the generators are as before."""

    def __enter__(self) -> None:
        self.kept = random.getstate(), torch.get_rng_state(), _numpy_state()
        random.seed(0)
        torch.default_generator.manual_seed(0)
        _numpy().random.seed(0)

    def __exit__(self, *_: object) -> None:
        random.setstate(self.kept[0])
        torch.set_rng_state(self.kept[1])
        _numpy().random.set_state(self.kept[2])


def _numpy() -> Any:
    import numpy

    return numpy


def _numpy_state() -> Any:
    return _numpy().random.get_state()


def operators() -> dict[str, Operator]:
    """Every operator of this torch's database that a sweep can sample, by name."""
    found: dict[str, Operator] = {}
    for info in database():
        operator = Operator(info)
        if why_left_out(operator.name) is None and operator.dtypes():
            found.setdefault(operator.name, operator)
    return found


def why_left_out(name: str) -> str | None:
    return next((why for start, why in LEFT_OUT.items() if name.startswith(start)), None)


def dtype_names(wanted: tuple[str, ...]) -> list[str]:
    """The dtypes asked for, all of them without a wish."""
    for name in wanted:
        if name not in DTYPES:
            raise unknown("dtype", name, DTYPES)
    return [name for name in DTYPES if not wanted or name in wanted]


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf


def usable(sample: Any) -> bool:
    """Are all tensors of a sample plain, strided ones of a reasonable size?"""
    found = list(tensors_of((sample.input, sample.args, sample.kwargs)))
    plain = all(type(one) in (torch.Tensor, torch.nn.Parameter) and one.layout is torch.strided for one in found)
    return (
        plain
        and all(one.device.type == "cpu" and not one.is_quantized for one in found)
        and sum(one.numel() for one in found) <= LARGEST
    )

"""A kernel that leaves the memory of its tensors, or whose own assert fails, is found without a GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance import backends
from conformance.contract import Contract
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.session import results_here
from conformance.stage import STAGES
from conformance.target import Target

pytestmark = pytest.mark.own_process  # it compiles with a patched compiler

LOAD = r"(tl\.load\(in_ptr0 \+ \([^)]*\)), xmask"


class Odd(Micrograph):
    """No block has this many elements, so that some lanes of the last one are masked."""

    inputs = (Tensor("37"),)
    contract = Contract()

    def forward(self, x):
        return torch.relu(x) + 1


class Chosen(Micrograph):
    """A kernel that asserts that its indices are inside."""

    inputs = (Tensor("37"), Tensor("5", torch.int64, fill="index:37"))
    contract = Contract()

    def forward(self, x, index):
        return x[index] * 2


def examined(micrograph: type[Micrograph]) -> tuple[set[str], str]:
    results = results_here(micrograph, backends.get("inductor"), Target("sm_90"), STAGES)
    found = [finding.detail for result in results.values() for finding in result.findings]
    return {str(result.verdict) for result in results.values()}, "; ".join(found)


@pytest.mark.parametrize("micrograph", [Odd, Chosen])
def test_right_kernels_pass(micrograph: type[Micrograph]) -> None:
    assert examined(micrograph) == ({"pass"}, "")


@pytest.mark.parametrize(
    ("pattern", "by", "says"),
    [
        (LOAD, r"\1, None", "reads memory that it was not given: 0 bytes after the end of in_ptr0"),
        (r"(tl\.store\(out_ptr0 \+ \([^)]*\), \w+), xmask", r"\1, None", "writes memory that it was not given"),
        (r"tl\.load\(in_ptr0 \+ \(", "tl.load(in_ptr0 - 2 + (", "reads memory that it was not given: 8 bytes before"),
    ],
    ids=["load without its mask", "store without its mask", "a wrong offset"],
)
def test_a_kernel_that_leaves_its_tensors_is_a_finding(
    rewrite_kernels: Callable[[str, str], None], pattern: str, by: str, says: str
) -> None:
    rewrite_kernels(pattern, by)
    verdicts, found = examined(Odd)
    assert "error" in verdicts and says in found


def test_an_assert_of_the_kernel_that_fails_is_a_finding(rewrite_kernels: Callable[[str, str], None]) -> None:
    rewrite_kernels(r"tl\.device_assert\(", "tl.device_assert((xindex < 2) & ")
    verdicts, found = examined(Chosen)
    assert "error" in verdicts and "device-side assert: index out of bounds" in found

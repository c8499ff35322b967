"""Questions are answered from the description, and only while it is open."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance import headless
from conformance.backends.inductor.backend import InductorBackend
from conformance.backends.inductor.seam import seam as inductor
from conformance.headless import device_guard, memory
from conformance.headless.device import described
from conformance.headless.program import Program, session
from conformance.headless.seam import REMEMBERING, SUBSCRIBED, seam, triton
from conformance.seam import Seam
from conformance.stage import STAGES
from conformance.target import DEVICES, Target

SM90 = Target("sm_90")


def owners(table: Seam, keys: list[str]) -> list[Any]:
    """The modules, classes and objects whose attributes a table's names are."""
    found = [table.locate(key)[0] for key in keys if table.has(key)]
    return list({id(owner): owner for owner in found}.values())


def state() -> dict[str, Any]:
    """All that a session replaces: the attributes of every owner in the tables by identity, the registries by
    content."""
    every = owners(seam, [*seam.names]) + owners(triton, [*triton.names]) + owners(inductor, [*SUBSCRIBED])
    every += [triton.language, triton.language.core, triton.language.math, triton.language.core.tensor]
    found = {
        f"{owner}.{k}": id(v) for owner in every for k, v in vars(owner).items() if k not in ("__dict__", "__weakref__")
    }
    registry, _, hooks, _ = device_guard._tables()
    found |= {"registry": tuple(registry), "hooks": hooks[0], "driver": id(triton.driver)}
    attention = "aten::scaled_dot_product_attention"
    found["attention"] = torch._C._dispatch_has_kernel_for_dispatch_key(attention, "AutogradCUDA")
    found["allocator"] = torch._C._dispatch_dump("aten::empty_strided")
    found["modes"] = torch._C._len_torch_dispatch_stack()
    found["threads of compile"] = inductor.config.compile_threads
    return found


def test_the_answers_are_the_descriptions() -> None:
    with described(Target("sm_120")):
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
        assert torch.cuda.get_device_capability() == (12, 0)
        assert torch.cuda.get_device_properties().multi_processor_count == DEVICES["sm_120"].multi_processor_count
        assert torch.utils._triton.has_triton()


@pytest.mark.parametrize("way", ["returns", "raises"])
def test_everything_is_undone(way: str) -> None:
    with session(SM90):
        pass  # what is imported on first use is imported now
    before, gpu = state(), torch.cuda.is_available()
    try:
        with session(SM90):
            assert state() != before and torch.cuda.is_available()
            if way == "raises":
                raise KeyError("in the middle")
    except KeyError:
        pass
    assert state() == before
    assert torch.cuda.is_available() is gpu


def test_undone_when_the_compiled_module_raises() -> None:
    class Fails(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(3, 5)  # six elements

    with session(SM90):
        pass
    before = state()
    with pytest.raises(Exception, match=r"shape|size"):
        Program(Fails(), SM90)(torch.ones(2, 3))
    assert state() == before


def test_answers_kept_by_torch_are_forgotten() -> None:
    """Two targets in one process: each gets its own properties, and afterwards nobody has any."""
    properties = torch._inductor.runtime.hints.DeviceProperties
    seen = []
    for name in ("sm_80", "sm_90"):
        with described(Target(name)):
            seen.append(properties.create(torch.device("cuda", 0)).cc)
    assert seen == [80, 90]
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        assert properties.create(torch.device("cuda", 0)).cc == 10 * major + minor
        return
    with pytest.raises((RuntimeError, AssertionError)):
        properties.create(torch.device("cuda", 0))


def test_a_question_that_torch_no_longer_has_makes_every_stage_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cuda, "_exchange_device")
    reasons = InductorBackend().unavailable(SM90)
    assert {*reasons} == {*STAGES}
    assert f"torch {torch.__version__} has no torch.cuda._exchange_device" in reasons[STAGES[0]]
    assert InductorBackend().unavailable(Target("cpu")) == {}, "a name of headless targets is none of the others'"


def test_without_triton_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    assert headless.unavailable(SM90) == dict.fromkeys(STAGES, "needs triton: pip install triton")


def test_functions_that_keep_answers_are_known_by_name() -> None:
    """At least those that both torch 2.11 and 2.15 have; a name that is misspelt would never be found."""
    assert sum(seam.has(path) for path in REMEMBERING) >= 20


# ---------------------------------------------------------------------------------------------- memory


def test_both_sides_are_the_same_bytes() -> None:
    host = torch.arange(6.0).reshape(2, 3)
    with session(SM90):
        there = memory.Memory().on_device(host)
        assert there.device == torch.device("cuda", 0) and there.shape == host.shape and type(there) is torch.Tensor
        there.add_(1)  # done by the CPU
    assert host.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_sharing_survives_the_way_there_and_back() -> None:
    base = torch.arange(6.0)
    with session(SM90):
        both = memory.Memory()
        one, other = both.on_device(base), both.on_device(base[2:])
        assert one.untyped_storage()._cdata == other.untyped_storage()._cdata and other.storage_offset() == 2
        assert both.on_host(other).data_ptr() == base[2:].data_ptr()


def test_a_copied_constant_has_memory_of_its_own() -> None:
    """As AOTAutograd copies a backward graph with the constants that it holds, two views of one storage among them."""
    with session(SM90):
        base = memory.on_device(torch.arange(6.0))
        held = {"base": base, "view": base[2:]}
        copied = copy.deepcopy(held)
        base.zero_()
        assert copied["view"].device.type == "cuda" and memory.on_host(copied["view"]).tolist() == [2, 3, 4, 5]
        copied["base"].add_(1)
        assert memory.on_host(copied["view"]).tolist() == [3, 4, 5, 6]


def test_memory_outlives_its_owner() -> None:
    with session(SM90):
        there = memory.on_device(torch.full((1000,), 7.0))
        torch.empty(1000).fill_(0.0)
        assert memory.on_host(there).sum().item() == 7000


@pytest.mark.parametrize(
    "build",
    [
        lambda x, device: x + 1,
        lambda x, device: torch.full((3,), 2.0, device=device) * x[0, 0],
        lambda x, device: x.cpu() * 2,
        lambda x, device: x.t()[1:].contiguous(),
        lambda x, device: x.to(torch.float16).to(device),
        lambda x, device: torch.cat([x, x]).sort(0).values,
        lambda x, device: torch.tensor([1.0, 2.0], device=device).sum(),
        lambda x, device: x * torch.tensor(3.0, device=device).item(),
        lambda x, device: x.new_tensor([1.0, 2.0, 3.0, 4.0]) + torch.as_tensor(2, device=device),
        lambda x, device: x.new_zeros(2).index_add_(0, torch.arange(2, device=device), x[0, :2]),
    ],
)
def test_library_calls_give_what_the_cpu_gives(build: Callable[[torch.Tensor, str], torch.Tensor]) -> None:
    host = torch.randn(3, 4)
    with session(SM90):
        found = build(memory.on_device(host.clone()), "cuda")
        found = memory.on_host(found)
    assert torch.equal(found, build(host, "cpu"))

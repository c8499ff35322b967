"""Questions are answered from the description, and only while it is open."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.headless import device, device_guard, memory
from conformance.headless.device import described, find
from conformance.headless.errors import Moved
from conformance.headless.program import Program, session
from conformance.target import DEVICES, Target

SM90 = Target("sm_90")


def state() -> dict[str, Any]:
    """All that a session replaces: the attributes by identity, the registries by content."""
    owners = ["torch._inductor.constant_folding.ConstantFolder", "torch._inductor.async_compile.AsyncCompile"]
    owners += [*device.questions(DEVICES["sm_90"]), "triton.runtime.jit.JITFunction", "triton.runtime.interpreter"]
    owners += ["triton.language", "triton.language.core", "triton.language.math", "triton.language.extra.libdevice"]
    owners += ["triton.language.core.tensor", "triton.runtime.interpreter.ReduceOps"]
    found = {f"{o}.{k}": id(v) for o in owners for k, v in vars(find(o)).items() if k not in ("__dict__", "__weakref__")}
    registry, _, hooks, _ = device_guard._tables()
    found |= {"registry": tuple(registry), "hooks": hooks[0], "driver": id(vars(find("triton.runtime").driver)["_active"])}
    attention = "aten::scaled_dot_product_attention"
    found["attention"] = torch._C._dispatch_has_kernel_for_dispatch_key(attention, "AutogradCUDA")
    found["lifting"] = torch._C._only_lift_cpu_tensors()
    found["modes"] = torch._C._len_torch_dispatch_stack()
    found["threads of compile"] = find("torch._inductor.config").compile_threads
    return found


def test_the_answers_are_the_descriptions() -> None:
    with described(Target("sm_120")):
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
        assert torch.cuda.get_device_capability() == (12, 0)
        assert torch.cuda.get_device_properties().multi_processor_count == DEVICES["sm_120"].multi_processor_count
        assert find("torch.utils._triton").has_triton()


@pytest.mark.parametrize("way", ["returns", "raises"])
def test_everything_is_undone(way: str) -> None:
    with session(SM90):
        pass  # what is imported on first use is imported now
    before = state()
    try:
        with session(SM90):
            assert state() != before
            if way == "raises":
                raise KeyError("in the middle")
    except KeyError:
        pass
    assert state() == before
    assert not torch.cuda.is_available() or torch.version.cuda


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
    properties = find("torch._inductor.runtime.hints").DeviceProperties
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


def test_what_moved_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cuda, "_exchange_device")
    with pytest.raises(Moved, match=r"torch.cuda._exchange_device moved"), described(SM90):
        pass


def test_moved_makes_cells_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance import headless
    from conformance.backends.inductor import InductorBackend

    headless.unavailable.cache_clear()
    monkeypatch.delattr(torch.cuda, "_exchange_device")
    try:
        reasons = InductorBackend().unavailable(SM90)
        assert len(reasons) == 7 and "torch.cuda._exchange_device moved" in reasons[next(iter(reasons))]
    finally:
        headless.unavailable.cache_clear()


def test_without_triton_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance import headless

    headless.unavailable.cache_clear()
    monkeypatch.setitem(sys.modules, "triton", None)
    try:
        assert headless.unavailable(SM90) == "needs triton: pip install triton"
    finally:
        headless.unavailable.cache_clear()


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
        lambda x, device: x.new_zeros(2).index_add_(0, torch.arange(2, device=device), x[0, :2]),
    ],
)
def test_library_calls_give_what_the_cpu_gives(build: Callable[[torch.Tensor, str], torch.Tensor]) -> None:
    host = torch.randn(3, 4)
    with session(SM90):
        found = build(memory.on_device(host.clone()), "cuda")
        found = memory.on_host(found)
    assert torch.equal(found, build(host, "cpu"))

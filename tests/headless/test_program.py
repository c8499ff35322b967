"""Programs for a described GPU: real Triton kernels, machine code for the target, and eager's answer when
interpreted."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor

from conformance import backends, oracle
from conformance.backends.inductor.seam import seam
from conformance.headless.device import described
from conformance.headless.errors import NotInterpretable
from conformance.headless.kernel import Kernel, notable
from conformance.headless.libdevice import FUNCTIONS
from conformance.headless.program import Program
from conformance.headless.seam import triton
from conformance.library import find, load
from conformance.session import results_here
from conformance.stage import Stage
from conformance.target import DEVICES, Target
from conformance.verdict import Verdict

SM90 = Target("sm_90")


@cache
def compiled(name: str, target: str = "sm_90") -> tuple[Program, oracle.Outcome, oracle.Reference]:
    """One micrograph, compiled and called once; several tests look at it."""
    micrograph = load()[name]
    seam.reset()
    module = micrograph.build()
    program = Program(module, Target(target))
    with seam.config.patch(force_disable_caches=True):
        outcome = oracle.run(program, micrograph.example(), module, calls=micrograph.steps)
    return program, outcome, oracle.reference(module, micrograph.example(), calls=micrograph.steps)


@pytest.mark.parametrize(
    "name",
    [
        "norm.add_rmsnorm",
        "reduction.max_with_index",
        "dtypes.bf16",
        "mutation.counter",
        "training.linear",
        "indexing.scatter_add",
        "upstream.scans.sums_of_columns",  # programs that wait for those before them
    ],
)
def test_interpreted_gives_what_eager_gives(name: str) -> None:
    _, outcome, ref = compiled(name)
    assert outcome.error is None, outcome.error
    assert [str(difference) for difference in oracle.compare(outcome, ref)] == []


def test_training_makes_kernels_for_both_directions() -> None:
    program, outcome, _ = compiled("training.linear")
    assert outcome.grads and all(gradient is not None for gradient in outcome.grads.values())
    assert program.kernels


def test_a_wrong_kernel_is_seen() -> None:
    """The interpreter runs the generated source, and not something like it."""
    program, first, ref = compiled.__wrapped__("norm.add_rmsnorm")
    assert not oracle.compare(first, ref)
    (kernel,) = program.kernels.values()
    wrong = kernel.source.replace("libdevice.rsqrt(", "libdevice.sqrt(")
    assert wrong != kernel.source
    kernel.source = wrong
    del kernel.autotuner  # made from the source, when it is next launched
    assert oracle.compare(oracle.run(program, load()["norm.add_rmsnorm"].example(), program.module), ref)


def test_a_function_without_a_stand_in_is_named() -> None:
    """Triton declares each function of libdevice as a stub that returns None: the kernel would seem to be wrong."""
    program, first, _ = compiled.__wrapped__("norm.add_rmsnorm")
    assert first.error is None
    (kernel,) = program.kernels.values()
    kernel.source = kernel.source.replace("libdevice.rsqrt(", "libdevice.erfcinv(")
    del kernel.autotuner
    outcome = oracle.run(program, load()["norm.add_rmsnorm"].example(), program.module)
    assert isinstance(outcome.error, NotInterpretable), outcome.error
    assert "erfcinv of libdevice has no stand-in" in str(outcome.error)


def test_every_function_that_inductor_writes_has_a_stand_in() -> None:
    """A new release may write one more. `libdevice.mul_rn`, of 2.15, was found missing by a sweep of operators."""
    folder = Path(seam.config.__file__).parent
    written = {name for path in folder.rglob("*.py") for name in re.findall(r"libdevice\.(\w+)\(", path.read_text())}
    known = {name for name in written if hasattr(triton.libdevice, name)}
    assert "rsqrt" in known and known <= FUNCTIONS.keys()


@pytest.mark.parametrize("target", [*DEVICES])
def test_machine_code_for_each_target(target: str) -> None:
    program, _, _ = compiled("pointwise.chain", target)
    (kernel,) = program.kernels.values()
    assert f"cc={target[3:]}" in kernel.source
    with described(Target(target)):
        binary = kernel.compiled()
    assert not binary.error and binary.registers > 0 and binary.spills == 0
    assert f".target sm_{target[3:]}" in binary.ptx


def test_code_that_does_not_compile_is_said() -> None:
    program, _, _ = compiled("pointwise.chain")
    (kernel,) = program.kernels.values()
    broken = Kernel(kernel.name, kernel.source.replace("tl.store(", "tl.no_such_thing("))
    with described(SM90):
        binary = broken.compiled()
    assert "no_such_thing" in binary.error and binary.facts().keys() == {"error"}


def test_notable_instructions() -> None:
    ptx = (
        "\n\tld.global.L1::evict_last.v4.b32 { %r1 };\n\t@%p1 st.global.v2.b64 [x], y;"
        "\n\twgmma.mma_async.sync x;\n\tadd.f32 a, b;\n"
    )
    assert notable(ptx) == {"ld.global.v4": 1, "st.global.v2": 1, "wgmma.mma_async": 1}


def test_one_process_examines_several_micrographs_for_several_targets() -> None:
    """Through the backend, as `conformance run` does it."""
    for name, target in (("pointwise.chain", "sm_90"), ("attention.sdpa", "sm_80")):
        found = results_here(load()[name], backends.get("inductor"), Target(target), [Stage.FUSION, Stage.CODEGEN])
        assert [result.verdict.value for result in found.values()] == ["pass", "pass"], found


class Changing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()
        self.factor = 2.0
        self.register_buffer("offset", torch.zeros(3))

    def forward(self, x):
        return self.inner(x) * self.factor + self.offset


@pytest.mark.parametrize("compiled", [False, True])
def test_what_changes_on_the_module_between_calls_is_seen_by_its_program(compiled: bool) -> None:
    module = Changing()
    program = Program(module, Target.parse("sm_90"), compiled)
    x = torch.ones(3)
    assert program(x).tolist() == [2.0] * 3
    module.factor = 3.0
    assert program(x).tolist() == [3.0] * 3
    module.later = "new"
    del module.factor
    type(module).factor = 5.0
    try:
        assert program(x).tolist() == [5.0] * 3
    finally:
        del type(module).factor


def test_a_hook_and_a_shadowed_buffer_reach_the_module_of_the_device() -> None:
    module = Changing()
    program = Program(module, Target.parse("sm_90"), compiled=False)
    x = torch.ones(3)
    handle = module.inner.register_forward_hook(lambda part, given, result: result + 10)
    assert program(x).tolist() == [22.0] * 3
    handle.remove()
    vars(module)["offset"] = torch.full((3,), 7.0)
    assert program(x).tolist() == [9.0] * 3


class Transformed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.hfftn(x, s=(3, 10), dim=(1, 2), norm="ortho")


class Factored(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.geqrf(x))


class Convolved(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = torch.arange(81.0, dtype=x.dtype).view(3, 3, 3, 3)
        return torch.nn.functional.conv_transpose2d(x, weight.to(x.device), stride=2, padding=2, output_padding=1)


class Decomposed(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.linalg.svd(x, full_matrices=False))


class Padded(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        resized = torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
        places = torch.nonzero(x > 1), torch.nonzero_static(x > 1, size=5)
        return torch.nn.functional.pad(x, (1, 1), mode="reflect"), resized, *places


class Normed(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ones, zeros = torch.ones(4, dtype=x.dtype, device=x.device), torch.zeros(4, dtype=x.dtype, device=x.device)
        return tuple(torch.native_batch_norm(x, ones, zeros, zeros.clone(), ones.clone(), True, 0.5, 0.6))


class Fetched(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).to("cpu", torch.float64, non_blocking=True, copy=True)


@pytest.mark.parametrize(
    "module, given",
    [
        (Transformed(), torch.arange(42.0).view(1, 6, 7).expand(5, 6, 7)),
        (Factored(), torch.eye(7)[:5, :5] + 1),
        (Convolved(), torch.ones(3, 4, 4, dtype=torch.bfloat16)[:1].expand(3, 4, 4)),
        (Decomposed(), torch.arange(6.0).view(3, 2)),
        (Padded(), torch.arange(36.0).view(1, 3, 3, 4).to(memory_format=torch.channels_last)),
        (Normed(), torch.arange(40.0).view(2, 4, 5).bfloat16()),
    ],
)
def test_a_library_call_has_the_layout_of_the_gpu(module: nn.Module, given: torch.Tensor) -> None:
    """Its own, which the generated program asserts; and of a part of a tensor, whose last row is not whole."""
    seam.reset()
    wanted = oracle.Reference(oracle.run(Program(module, SM90, compiled=False), (given,)), None)
    assert oracle.compare(oracle.run(Program(module, SM90), (given,)), wanted) == []


def test_a_call_that_needs_the_driver_is_said_to_be_beyond_us() -> None:
    seam.reset()
    said = oracle.run(Program(Fetched(), SM90), (torch.ones(3, 4),)).error
    assert said is None or isinstance(said, NotInterpretable), said


class Diagonals(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sparse.spdiags(x, torch.tensor([0, -1]), (4, 4)).to_dense()


def test_what_a_gpu_has_not_is_not_blamed_on_the_compiler() -> None:
    seam.reset()
    said = oracle.run(Program(Diagonals(), SM90), (torch.arange(8.0).view(2, 4),)).error
    assert said is None or isinstance(said, NotInterpretable), said


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["upstream.pairs_of_any_size.pairs", "upstream.derivatives_inside.forward_jacobian_of_each_number"]
)
def test_a_right_program_of_odd_layouts_and_tensors_raises_no_alarm(name: str) -> None:
    """One gets memory whose layout a GPU chooses; the other hands us tensors of vmap's, which hold another."""
    found = results_here(find(name), backends.get("inductor"), SM90)
    assert not {stage: said.reason for stage, said in found.items() if said.verdict in (Verdict.FAIL, Verdict.ERROR)}


class Trained(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4).to(dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x).relu()


class Marked(torch.Tensor):
    pass


class MakesItsOwn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = (x * 2).as_subclass(Marked)
        made.mark = x + 1
        return made


def test_a_result_keeps_its_class_and_what_it_was_given() -> None:
    result = Program(MakesItsOwn(), SM90, compiled=False)(torch.ones(3))
    assert type(result) is Marked and result.tolist() == [2.0, 2.0, 2.0]
    assert not result.mark.is_cuda and result.mark.tolist() == [2.0, 2.0, 2.0]


class ReplacesData(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.data = y
        return x * 2


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("grad", [False, True], ids=["", "with a gradient"])
def test_data_that_is_replaced_is_what_the_caller_has(compiled: bool, grad: bool) -> None:
    seam.reset()
    x, y = torch.ones(3, requires_grad=grad), torch.arange(3.0)
    result = Program(ReplacesData(), SM90, compiled=compiled, options={"backend": "eager"})(x, y)
    assert result.tolist() == [0.0, 2.0, 4.0] and x.tolist() == [0.0, 1.0, 2.0] and not x.is_cuda


class WritesNumberOfHost(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(()).add_(x.sum())


def test_a_number_of_the_host_is_not_written_from_a_gpu() -> None:
    with pytest.raises(RuntimeError, match="at least two devices"):
        Program(WritesNumberOfHost(), SM90, compiled=False)(torch.ones(3))


class MakesTwo(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return TwoTensor(x, x + 1)


class ReturnsNewParameter(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.Parameter(x * 2) * x


@pytest.mark.parametrize(
    ("module", "given", "reason"),
    [
        (ReturnsNewParameter(), torch.ones(3), "a result has a gradient function"),
        (nn.ReLU(), torch._efficientzerotensor(3), "zeros that has no memory"),
        (nn.ReLU(), TwoTensor(torch.ones(3), torch.ones(3)), "only wraps others"),
        (MakesTwo(), torch.ones(3), "only wraps others"),
    ],
    ids=["gradient from inside", "no memory", "a wrapper", "a wrapper from inside"],
)
def test_what_a_description_cannot_hold_is_said(module: nn.Module, given: torch.Tensor, reason: str) -> None:
    with pytest.raises(NotInterpretable, match=reason):
        Program(module, SM90, compiled=False)(given)


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_batch_norm_trains_in_eager_as_a_gpu_would(weights: torch.dtype) -> None:
    """Eager asks for cuDNN's, and for means that are saved in float32."""
    seam.reset()
    module = Trained(weights)
    given = torch.arange(40.0).view(2, 4, 5).to(torch.bfloat16)
    plain, compiled = Program(module, SM90, compiled=False), Program(module, SM90)
    wanted = oracle.Reference(oracle.run(plain, (given.clone().requires_grad_(),)), None)
    assert wanted.eager.error is None
    assert oracle.compare(oracle.run(compiled, (given.clone().requires_grad_(),)), wanted) == []

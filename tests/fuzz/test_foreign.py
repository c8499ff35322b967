"""Programs through backends that export: modules keep their parameters, stages are looked at, kernels for GPUs are computed without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.backends.autodeploy import reference_kernels
from conformance.backends.base import Compiled
from conformance.checks import measured
from conformance.errors import UsageError
from conformance.fresh import Died
from conformance.fuzz import commands, foreign, program_lane, rungs
from conformance.fuzz.causes import cause_of
from conformance.fuzz.grammars import GRAMMARS
from conformance.fuzz.program import Program, module_of
from conformance.fuzz.program_tasks import Alarm, Playing, alike, compared
from conformance.inputs import Tensor
from conformance.processes import Death
from conformance.stage import Stage
from conformance.trace import Observation
from conformance.verdict import Finding, Kind

PLACE = foreign.place("torch_tensorrt", "sm_90")


def program(grammar: str, **choices: str) -> Program:
    rules = GRAMMARS[grammar]
    return Program.of(rules, {**rules.plainest(), **choices})


class Doubling(Compiled):
    """A compile that doubles its input, and what its stages and its other kernels say."""

    def __init__(self, finding: Finding | None = None, variant: Callable[..., Any] | None = None) -> None:
        self.finding, self.variant = finding, variant

    def __call__(self, *inputs: Any) -> Any:
        return inputs[0] * 2

    def observe(self, stage: Stage) -> Observation:
        return Observation(findings=[self.finding] if self.finding and stage is Stage.CODEGEN else [])

    def variants(self) -> Mapping[str, Callable[..., Any]]:
        return {"other": self.variant} if self.variant else {}


def refused(x: torch.Tensor) -> torch.Tensor:
    raise TypeError("two tensors are wanted")


@pytest.mark.parametrize(
    ("compiled", "said"),
    [
        (Doubling(), ""),
        (Doubling(Finding(Kind.BAD_CODE, measured.CONVERTED, "mul: the layers give INT32 for float32")), "INT32"),
        (Doubling(Finding(Kind.MATCH_LOSS, measured.PASS_MATCHES, "the contract says 1")), ""),
        (Doubling(variant=lambda x: x + x), ""),
        (Doubling(variant=lambda x: x * 3), "other kernels: value"),
        (Doubling(variant=refused), "two tensors are wanted"),
    ],
)
def test_what_stages_and_other_kernels_show_is_raised(compiled: Doubling, said: str) -> None:
    if not said:
        assert torch.equal(foreign._run(compiled, (torch.ones(2),)), torch.full((2,), 2.0))
        return
    with pytest.raises(foreign.Observed, match=said):
        foreign._run(compiled, (torch.ones(2),))


def test_what_a_stage_shows_is_told_apart_from_a_crash() -> None:
    one = program("converters")
    want = ("value", ("int", "1"))
    found = compared(
        one, PLACE, want, ("raised", ("Observed", "codegen: TRT011: mul: the layers give INT32 for float32"))
    )
    assert found == ("observed", "codegen: TRT011: mul: the layers give INT32 for float32")
    assert "integers" in cause_of(one, "runtime", *found, "torch_tensorrt").name
    assert Alarm(one, PLACE, "raises", "compiled raises Refused: torch.export does not take it").declined


def test_a_module_keeps_its_parameters_and_its_dims() -> None:
    with module_of(program("decoder_norms", dynamic="batch")) as module:
        made = foreign.micrograph_of(module.f, module.inputs())
        built = made.build()
        assert {"program.scale", "program.weight"} <= {*dict(built.named_parameters())}
        assert made.contract.capture.dynamic == ("b",) and made.dims == {"b": 2}
        (first, *_) = made.inputs
        assert isinstance(first, Tensor) and first.names()[0] == "b"
        assert torch.equal(built(*made.example()), module.f(*module.inputs()))


def test_modules_and_functions_are_compiled_side_by_side() -> None:
    programs = [program("decoder_norms", dynamic="batch"), program("converters", op="x * 0.5", dynamic="first dim")]
    seen: list[Any] = []

    def compile(fn: Any) -> Any:
        seen.append(fn)
        return fn

    with module_of(programs[0]) as first, module_of(programs[1]) as second:
        outcomes = rungs._in_one_compile([first, second], compile)
    assert [outcome[0] for outcome in outcomes] == ["value", "value"]
    assert seen[0].dynamic == {(0, 0): "b0", (1, 0): "b0", (2, 0): "n2", (3, 0): "n2"}
    assert len(list(seen[0].parameters())) == 6


def test_what_eager_refuses_is_not_exported() -> None:
    playing = Playing(60.0)
    wrong = program("converters", op="x.sum((0, -1), keepdim=True)", x_shape="(3,)")
    assert not playing._wanted(wrong, exported=True) and playing._wanted(wrong, exported=False)


@pytest.mark.parametrize("name", [name for name in GRAMMARS if name.startswith("decoder")])
def test_every_entry_of_the_decoders_runs_in_eager(name: str) -> None:
    rules = GRAMMARS[name]
    for slot in ("add", "norm", "then", "rope", "attend", "mask", "layer", "repeat"):
        for key in rules.slots.get(slot, {}):
            with module_of(program(name, **{slot: key})) as module, torch.no_grad():
                module.f(*module.inputs())


def test_most_programs_of_the_converters_run_in_eager() -> None:
    random, player, values = Random(3), rungs.Player(60.0), 0
    for _ in range(60):
        one = Program.of(rules := GRAMMARS["converters"], rules.draw(random, lambda slot, key: 1.0))
        want = player.eager(one)
        values += want is not None and want[0] == "value"
    assert values >= 20


@pytest.mark.parametrize(
    ("x", "residual", "error"),
    [
        (torch.ones(2, 4), torch.ones(2, 4), None),
        (torch.ones(2, 4), 1.0, TypeError),
        (torch.ones(2, 4), torch.ones(4), ValueError),
        (torch.ones(2, 4), torch.ones(2, 4).double(), ValueError),
    ],
)
def test_the_fused_kernel_writes_into_both_and_takes_one_shape(x: Any, residual: Any, error: Any) -> None:
    if error is not None:
        with pytest.raises(error):
            reference_kernels.fused_add_rms_norm(x, residual, torch.ones(4), 1e-6)
        return
    norm, total = reference_kernels.fused_add_rms_norm(x, residual, torch.full((4,), 3.0), 1e-6)
    assert norm is x and total is residual
    assert torch.equal(total, torch.full((2, 4), 2.0))
    torch.testing.assert_close(norm, torch.full((2, 4), 3.0))


@pytest.mark.parametrize(
    ("globs", "exporter", "there", "not_there"),
    [
        (("programs",), "torch_tensorrt", "converters", "decoder_norms"),
        (("programs",), "autodeploy", "decoder_norms", "converters"),
        (("programs",), "", "world", "converters"),
        ((), "", "world", "decoder_norms"),
        (("programs.converters",), "", "converters", "world"),
        (("programs",), "inductor", "writes", "world"),
    ],
)
def test_grammars_go_to_the_compilers_that_they_are_written_for(
    globs: tuple[str, ...], exporter: str, there: str, not_there: str
) -> None:
    found = commands._grammars(globs, None, exporter, True)
    assert there in found and not_there not in found


def test_a_grammar_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(UsageError, match=r"programs\.nothing"):
        commands._grammars(("programs.nothing",), None, "", True)


class Dying:
    """Processes that die of every program, or of all but the plainest."""

    def __init__(self, of_all: bool) -> None:
        self.of_all = of_all

    def call(self, function: Callable[..., Any], *args: Any, limit: float = 300.0) -> Any:
        if self.of_all or args[0].program.cause:
            raise Died(Death(timeout=False, reason="ended by SIGSEGV"))
        return False


@pytest.mark.parametrize("of_all", [True, False])
def test_a_machine_on_which_all_programs_die_is_not_the_program(of_all: bool) -> None:
    alarm = Alarm(program("converters", op="x * 0.5"), PLACE, "raises", "the process died")
    if of_all:
        assert program_lane._shows(alarm, 1.0, Dying(True)) == program_lane.DIES_ANYWAY
        return
    with pytest.raises(Died):
        program_lane._shows(alarm, 1.0, Dying(False))


@pytest.mark.parametrize(
    ("what", "detail", "same"),
    [
        ("observed", "fusion: flashinfer kernels: value: other numbers", True),
        ("observed", "fusion: flashinfer kernels: dtype: eager int64, compiled int32", False),
        ("value", "fusion: flashinfer kernels: value: other numbers", False),
    ],
)
def test_a_smaller_program_shows_the_same(what: str, detail: str, same: bool) -> None:
    alarm = Alarm(program("decoder_layers"), PLACE, "observed", "fusion: flashinfer kernels: value: numbers")
    assert alike((what, detail), alarm) is same
    crash = Alarm(program("decoder_layers"), PLACE, "raises", "compiled raises ValueError: no shape")
    assert alike(("raises", "compiled raises ValueError: 3 dims"), crash)
    assert not alike(("raises", "compiled raises Unsupported: torch.export cannot take it"), crash)


def test_inputs_that_have_gradients_are_taken_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exported program has no gradients; writes still reach the caller's tensor."""

    class Writing(Doubling):
        def __call__(self, *inputs: Any) -> Any:
            return inputs[0].mul_(2)

    monkeypatch.setattr(backends.get("eager"), "compile", lambda case: Writing())
    x = torch.ones(2, requires_grad=True) * 1
    result = foreign.compiler_of("eager/cpu")(lambda t: t)(x)
    assert not result.requires_grad and x.tolist() == [2.0, 2.0]


def test_a_tensor_on_the_cpu_is_no_fault_of_code_for_a_gpu() -> None:
    for target, declined in (("sm_90", True), ("cpu", False)):
        place = foreign.place("inductor" if declined else "autodeploy", target)
        assert (
            Alarm(program("writes"), place, "raises", "TorchRuntimeError: Tensor device mismatch").declined is declined
        )

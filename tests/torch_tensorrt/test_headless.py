"""Real engines without a GPU: what each stage shows, and that each kind of fault is seen where it is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import oracle
from conformance.backends.base import CannotRun, Case
from conformance.backends.torch_tensorrt.backend import TorchTensorRTBackend
from conformance.backends.torch_tensorrt.compilation import SETTINGS
from conformance.backends.torch_tensorrt.compile_log import CompileLog
from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled
from conformance.backends.torch_tensorrt.engine_cache import CHANGED, twins
from conformance.backends.torch_tensorrt.installed import installed, missing
from conformance.backends.torch_tensorrt.instrument import Instrument
from conformance.backends.torch_tensorrt.seam import seam
from conformance.library import load
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.verdict import Kind, Verdict

pytestmark = pytest.mark.library
OURS = load(Path(__file__).parent / "micrographs.py")
LIFTS = not missing(installed()) and seam.has("lift_buffers")
lifting = pytest.mark.skipif(not LIFTS, reason="aliased I/O came with 2.14")


def compiled(name: str, target: str = "sm_90") -> TorchTensorRTCompiled:
    made = TorchTensorRTBackend().compile(Case(OURS[f"micrographs.{name}"], Target(target)))
    assert isinstance(made, TorchTensorRTCompiled)
    return made


def differences(made: TorchTensorRTCompiled, stage: Stage) -> list[oracle.Difference]:
    """The program as of a stage against eager."""
    micrograph, inputs = made.case.micrograph, made.case.inputs()
    program = made.at(stage)
    assert program is not None
    ref = oracle.reference(made.case.module().eval(), inputs, calls=micrograph.steps)
    return oracle.compare(oracle.run(program, oracle.clone_inputs(inputs), made.module, calls=micrograph.steps), ref)


def first_different(made: TorchTensorRTCompiled) -> tuple[Stage | None, list[oracle.Difference]]:
    for stage in STAGES[: Stage.RUNTIME.order]:
        if found := differences(made, stage):
            return stage, found
    return None, []


# ------------------------------------------------------------------------------------------- what is shown


def test_every_stage_of_a_plain_module() -> None:
    made = compiled("plain")
    assert made.recording.error is None
    seen = {stage: made.observe(stage) for stage in STAGES[:5]}
    assert all(o.verdict is None and not o.findings for o in seen.values())
    assert seen[Stage.CAPTURE].facts["graphs"] == 1
    assert seen[Stage.FUSION].facts["engines"] == 1
    assert seen[Stage.FUSION].facts["partitioners"] == {"fast_partition": 1, "global_partition": 1}
    assert seen[Stage.FUSION].facts["ops_in_torch"] == {}
    code = seen[Stage.CODEGEN].facts
    assert code["programs"] == 1 and code["plan_bytes"] > 1000
    assert code["layer_types"]["MATRIX_MULTIPLY"] == 1
    assert code["layers"] == sum(code["layer_types"].values()) > code["built_layers"] >= code["fused_layers"] >= 1
    assert first_different(made) == (None, [])


def test_a_headless_engine_does_not_run() -> None:
    made = compiled("plain")
    with pytest.raises(CannotRun, match="needs a CUDA device"):
        made(*made.case.inputs())
    assert made.observe(Stage.RUNTIME).verdict is Verdict.UNAVAILABLE


@pytest.mark.parametrize(
    ("target", "capability"),
    [
        ("sm_80", "SM80"),
        ("sm_90", "any"),
        pytest.param("sm_120", "SM120", marks=pytest.mark.slow),
        pytest.param("sm_100", "any", marks=pytest.mark.slow),
    ],
)
def test_the_capability_that_the_builder_knows(target: str, capability: str) -> None:
    assert compiled("dynamic", target).observe(Stage.CODEGEN).facts["compute_capability"] == capability


def test_everything_that_was_replaced_is_put_back() -> None:
    def state() -> dict[str, Any]:
        found = {key: seam.locate(key) for key in seam.names if seam.has(key)}
        return {key: getattr(owner, name) if name else owner for key, (owner, name) in found.items()}

    before, capability, level = state(), torch.cuda.get_device_capability, seam.builder_log.level
    compiled("plain")
    assert state() == before
    assert torch.cuda.get_device_capability is capability
    assert seam.builder_log.level == level
    assert seam.tensorrt_runtime.__module__.startswith("tensorrt")


def test_a_symbolic_dim_has_a_range() -> None:
    made = compiled("dynamic")
    assert made.observe(Stage.CAPTURE).facts["dynamic"] == ["s"]
    (spec,) = made.compilation.captured.inputs  # type: ignore[union-attr]
    assert spec.shape == {"min_shape": (2, 8), "opt_shape": (6, 8), "max_shape": (24, 8)}


def test_a_dim_that_did_not_stay_symbolic_is_found() -> None:
    seen = compiled("specialized").observe(Stage.CAPTURE)
    assert [finding.kind for finding in seen.findings] == [Kind.EXTRA_RECOMPILE]


def test_training_is_unsupported() -> None:
    seen = compiled("trained").observe(Stage.CAPTURE)
    assert seen.verdict is Verdict.UNSUPPORTED and "inference only" in seen.reason


@pytest.mark.slow
def test_torch_compile_builds_its_engine_or_falls_back() -> None:
    """`torch.compile(backend="torch_tensorrt")` builds its engine here as well, and says so when it falls back."""
    for name, engines in (("plain", 1), ("unconverted", 0)):
        made, log = compiled(name), CompileLog()
        torch._dynamo.reset()
        fn = torch.compile(made.case.module().eval(), backend="torch_tensorrt", options=dict(SETTINGS))
        with Instrument(made.case.target, log).listening(), torch.no_grad():
            outcome = oracle.run(fn, made.case.inputs())
        assert len(log.engines) == engines
        assert (outcome.error is None) == (engines == 0), "an engine without a device cannot run, the fallback can"
        assert not any("conversion failed" in line for line in log.warnings)
        assert made.recapture() == {"dynamo": {"graphs": 1}}


# ---------------------------------------------------------------------------------------------- fallback


def test_all_ops_in_pytorch_is_fallback() -> None:
    seen = compiled("unconverted").observe(Stage.FUSION)
    assert seen.verdict is Verdict.FALLBACK
    assert seen.facts["ops_in_torch"] == {"aten.special_bessel_j0.default": "no converter"}


def test_an_op_between_engines() -> None:
    made = compiled("between")
    seen = made.observe(Stage.FUSION)
    assert seen.verdict is None
    assert seen.facts["engines"] == 2
    assert seen.facts["ops_in_torch"] == {"aten.special_bessel_j0.default": "no converter"}
    assert differences(made, Stage.FUSION) == []


# ---------------------------------------------------------------------------------- mutation and aliasing


def test_a_plain_input_mutation_is_lost_in_lowering() -> None:
    made = compiled("add_input")
    stage, found = first_different(made)
    assert stage is Stage.POSTGRAD and {d.kind for d in found} == {Kind.LOST_MUTATION}
    facts = made.observe(Stage.POSTGRAD).facts
    assert facts["written_inputs_before"] == 1 and facts["written_inputs"] == 0
    assert list(facts["writes_dropped_by"].values()) == [["x"]]


@lifting
def test_a_cache_write_is_left_to_the_engine() -> None:
    made = compiled("cache_write")
    assert first_different(made) == (None, [])
    code = made.observe(Stage.CODEGEN).facts
    assert code["aliased_io"] == {"_run_on_acc_0.output1": "cache (kv_cache_update)"}
    assert code["promoted_outputs"] == ["_run_on_acc_0.output1"]
    assert code["layer_types"]["KV_CACHE_UPDATE"] == 1
    assert made.observe(Stage.POSTGRAD).facts["writes_left_to_engines"] == ["cache"]


@lifting
def test_the_alias_survives_serialization() -> None:
    from torch_tensorrt.dynamo.runtime._TorchTensorRTModule import deserialize_aliased_io, serialize_aliased_io

    (engine,) = compiled("cache_write").recording.engines
    assert engine.aliased_io and deserialize_aliased_io(serialize_aliased_io(engine.aliased_io)) == engine.aliased_io


@lifting
def test_a_strided_cache_write_is_bad_code() -> None:
    seen = compiled("strided_write").observe(Stage.CODEGEN)
    assert [finding.kind for finding in seen.findings] == [Kind.BAD_CODE]


@lifting
def test_a_buffer_is_lifted_and_the_structure_lost() -> None:
    made = compiled("buffer_cache")
    facts = made.observe(Stage.DECOMPOSITION).facts
    assert facts["lifted_buffers"] == {"buf_cache": "cache"}
    assert facts["written_in_place"] == ["buf_cache"] and facts["copied_back"] == []
    stage, found = first_different(made)
    assert stage is Stage.DECOMPOSITION and [d.kind for d in found] == [Kind.WRONG_METADATA]


@lifting
def test_a_buffer_that_is_no_cache_is_not_written() -> None:
    made = compiled("average")
    assert made.observe(Stage.DECOMPOSITION).facts["copied_back"] == ["average"]
    stage, found = first_different(made)
    assert stage is Stage.DECOMPOSITION and {d.kind for d in found} == {Kind.LOST_MUTATION}


@lifting
def test_the_low_level_flag_lifts_buffers() -> None:
    """`convert_exported_program_to_serialized_trt_engine(lift_mutable_buffers=True)`: the buffer is a binding of the
    engine."""
    lifted, baked = low_level(lift=True), low_level(lift=False)
    assert "buf_cache" in lifted.input_names and [source for source, _ in lifted.aliased_io.values()] == ["buf_cache"]
    assert "buf_cache" not in baked.input_names and baked.aliased_io == {}


def low_level(lift: bool) -> Any:
    import torch_tensorrt
    from torch_tensorrt.dynamo import _compiler

    case = Case(OURS["micrographs.buffer_cache"], Target("sm_90"))
    program = torch.export.export(case.module().eval(), case.inputs())
    results: list[Any] = []
    with Instrument(case.target, CompileLog()).watching(), pytest.MonkeyPatch.context() as patch:
        interpret = seam.interpret

        def kept(*args: Any, **kwargs: Any) -> Any:
            results.append(interpret(*args, **kwargs))
            return results[-1]

        patch.setattr(_compiler, "interpret_module_to_result", kept)
        plan = torch_tensorrt.dynamo.convert_exported_program_to_serialized_trt_engine(
            program, arg_inputs=list(case.inputs()), min_block_size=1, lift_mutable_buffers=lift
        )
    assert len(plan) > 1000
    return results[0]


@lifting
def test_a_functional_write_overwrites_the_callers_cache() -> None:
    """slice_scatter of an input becomes the layer that writes in place, whether or not the program writes."""
    stage, found = first_different(compiled("functional_write"))
    assert stage is Stage.CODEGEN and {d.kind for d in found} == {Kind.LOST_MUTATION}


@lifting
def test_a_returned_write_is_taken_for_a_side_effect() -> None:
    stage, found = first_different(compiled("returned_write"))
    assert stage is Stage.CODEGEN and found


def test_an_engine_gives_contiguous_tensors_of_its_own() -> None:
    stage, found = first_different(compiled("transposed"))
    assert stage is Stage.CODEGEN and {d.kind for d in found} == {Kind.LOST_ALIAS, Kind.WRONG_METADATA}


# ------------------------------------------------------------------------- faults are seen where they are


def test_a_wrong_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_tensorrt.dynamo import _compiler

    real = _compiler.get_decompositions

    def wrong(*args: Any, **kwargs: Any) -> dict[Any, Callable[..., Any]]:
        return {**real(*args, **kwargs), torch.ops.aten.relu.default: lambda x: torch.ops.aten.clamp.default(x, 0.5)}

    monkeypatch.setattr(_compiler, "get_decompositions", wrong)
    stage, found = first_different(compiled("plain"))
    assert stage is Stage.DECOMPOSITION and {d.kind for d in found} == {Kind.WRONG_RESULT}


def test_a_wrong_lowering_pass() -> None:
    def drops_relu(gm: torch.fx.GraphModule, settings: Any) -> torch.fx.GraphModule:
        for node in [node for node in gm.graph.nodes if node.target is torch.ops.aten.relu.default]:
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
        gm.recompile()
        return gm

    with seam.replace(post_passes=[drops_relu, *seam.post_passes]):
        made = compiled("plain")
    stage, found = first_different(made)
    assert stage is Stage.POSTGRAD and {d.kind for d in found} == {Kind.WRONG_RESULT}
    assert "drops_relu" in made.observe(Stage.POSTGRAD).facts["passes_changed"]


def test_a_wrong_partition() -> None:
    def wrong(proceed: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        partitioned, support = proceed(*args, **kwargs)
        engine = partitioned._run_on_acc_0
        for node in engine.graph.nodes:
            if node.target is torch.ops.aten.add.Tensor:
                node.target = torch.ops.aten.sub.Tensor
        engine.recompile()
        return partitioned, support

    with seam.subscribe(fast_partition=wrong):
        stage, found = first_different(compiled("plain"))
    assert stage is Stage.FUSION and {d.kind for d in found} == {Kind.WRONG_RESULT}


def test_a_crash_is_blamed_on_its_stage() -> None:
    def breaks(proceed: Callable[..., Any], interpreter: Any) -> None:
        raise RuntimeError("a converter broke")

    with seam.subscribe(define_network=breaks):
        made = compiled("plain")
    seen = made.observe(Stage.CODEGEN)
    assert [(f.kind, f.detail) for f in seen.findings] == [(Kind.CRASH, "RuntimeError: a converter broke")]
    with pytest.raises(RuntimeError, match="a converter broke") as raised:
        made(*made.case.inputs())
    assert made.blame(raised.value) is Stage.CODEGEN
    assert made.observe(Stage.CACHE).verdict is Verdict.BLOCKED


# ------------------------------------------------------------------------------------------------- cache


def test_the_engine_cache_hits_and_misses() -> None:
    facts = compiled("plain").observe(Stage.CACHE).facts
    assert facts["first"] == {"engine_miss": 1}
    assert facts["again"] == {"engine_hit": 1}
    assert "disable_tf32" not in facts["changed_config_served"]


@pytest.mark.slow
def test_a_key_that_is_never_the_same() -> None:
    made, count = compiled("plain"), iter(range(1000))
    with seam.replace(engine_key=staticmethod(lambda *_: str(next(count)))):
        assert made.observe(Stage.CACHE).facts["again"] == {"engine_miss": 1}


@pytest.mark.slow
def test_a_key_that_sees_no_settings() -> None:
    """Torch-TensorRT refuses a hit with other settings of those that it compares (2.14 raises); those that it does not
    compare are served. Both are findings."""
    made = compiled("plain")
    assert made.observe(Stage.CACHE).facts["changed_config_served"] == []
    with seam.replace(engine_key=staticmethod(lambda *_: "same")):
        seen = made.observe(Stage.CACHE)
    served = seen.facts.get("changed_config_served", [])
    assert (served and {*served} <= {*CHANGED}) or [finding.check for finding in seen.findings] == ["TRT004"]


def test_a_key_that_sees_the_arguments() -> None:
    """With the arguments in the key, no twin is served: the finding comes from the key and from nothing else."""
    made, real = compiled("softmax"), seam.engine_key
    assert [finding.kind for finding in made.observe(Stage.CACHE).findings] == [Kind.STALE_CACHE]
    with seam.replace(
        engine_key=staticmethod(lambda gm, *rest: real(gm, *rest) + str([n.args for n in gm.graph.nodes]))
    ):
        assert made.observe(Stage.CACHE).findings == []


def test_twins_compute_something_else() -> None:
    made = compiled("softmax")
    (engine,) = made.recording.engines
    found = list(twins(engine.graph))
    assert found
    (x,) = made.case.inputs()
    for _, twin in found:
        assert not torch.equal(twin(x), engine.graph(x))

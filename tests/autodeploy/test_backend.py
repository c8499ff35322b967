"""The backend as an examination sees it; and each of its own findings, AD001 … AD006, made to happen."""

from __future__ import annotations

import pytest
import torch

from conformance.backends.autodeploy import AutoDeployBackend
from conformance.backends.autodeploy.compiled import AutoDeployCompiled, judge
from conformance.backends.autodeploy.passes import PassResult
from conformance.backends.base import Case
from conformance.contract import Capture, Contract
from conformance.inputs import Tensor
from conformance.micrograph import Micrograph
from conformance.session import results_here
from conformance.stage import STAGES, Stage
from conformance.target import CPU
from conformance.trace import Observation
from conformance.verdict import Verdict


@pytest.fixture(scope="module")
def backend(harness):
    return AutoDeployBackend()


def examined(backend, micrograph):
    return {stage.value: result for stage, result in results_here(micrograph, backend, CPU).items()}


def found(result):
    return {(finding.check, finding.kind.value) for finding in result.findings}


def test_the_decoder_block_in_every_stage(harness, backend):
    results = examined(backend, harness.micrographs["norm.decoder_block"])
    assert {stage: result.verdict.value for stage, result in results.items()} == {
        **dict.fromkeys([stage.value for stage in STAGES[:-1]], "pass"),
        "cache": "unavailable",
    }
    facts = {stage: result.observation.facts for stage, result in results.items()}
    assert facts["capture"]["dynamic"] == ["s"]
    assert {k: v for k, v in facts["postgrad"]["matches"].items() if v} == {"rmsnorm": 2, "swiglu": 1}
    assert {name: option["matches"]["add_rmsnorm"] for name, option in facts["fusion"]["options"].items()} == {
        "flashinfer": 2,
        "triton": 0,
        "torch": 0,
    }
    assert facts["codegen"]["kernels"]["flashinfer"]["flashinfer_fused_add_rms_norm"] == 2
    assert facts["codegen"]["compile_backend"] == "torch-simple"
    assert "add_rms" not in str(facts["codegen"]["kernels"]["torch"])


class Trained(Micrograph):
    """Has a gradient."""

    dims = {"n": 3}
    inputs = (Tensor("n", grad=True),)
    contract = Contract()

    def forward(self, x):
        return x * x


class Branches(Micrograph):
    """Looks at a value to choose what to do, which export cannot."""

    dims = {"n": 3}
    inputs = (Tensor("n"),)
    contract = Contract()

    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


@pytest.mark.parametrize(
    ("micrograph", "said"), [(Trained, "for inference: no gradients"), (Branches, "torch.export cannot take it")]
)
def test_what_export_cannot_take_is_unsupported_in_one_line(backend, micrograph, said):
    results = examined(backend, micrograph)
    assert {result.verdict for stage, result in results.items() if stage != "cache"} == {Verdict.UNSUPPORTED}
    assert said in results["capture"].reason and "\n" not in results["capture"].reason


class Counts(Micrograph):
    """Writes into a buffer and into an input."""

    dims = {"n": 5}
    inputs = (Tensor("n"),)
    contract = Contract(capture=Capture(recompiles={"n": 1}))

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        x.mul_(2)
        return x + self.calls


def test_writes_into_buffers_and_inputs_arrive(harness):
    case = Case(Counts, CPU)
    compiled = AutoDeployCompiled(harness.passes, case)
    for program in (compiled, *(compiled.at(stage) for stage in STAGES[:5])):
        (x,) = case.inputs()
        before, calls = x.clone(), float(compiled.module.calls)
        assert torch.equal(program(x), before * 2 + calls + 1)
        assert torch.equal(x, before * 2)
        assert float(compiled.module.calls) == calls + 1
    x = torch.randn(9)  # another size than was captured
    assert torch.equal(compiled(x.clone()), x * 2 + compiled.module.calls)
    compiled.close()


@pytest.fixture
def patched(harness, monkeypatch):
    """Replace what a transform does."""

    def patch(name, apply):
        cls = harness.passes.registry.get(name)
        monkeypatch.setattr(cls, "_apply", lambda self, gm, *_: apply(gm, harness.loaded.seam.info))

    return patch


def test_ad005_a_fusion_that_matches_nothing_any_more(harness, backend, patched):
    patched("fuse_add_rms_norm", lambda gm, info: (gm, info(skipped=False, num_matches=0)))
    results = examined(backend, harness.micrographs["norm.add_rmsnorm"])
    assert results["fusion"].verdict is Verdict.FAIL
    assert found(results["fusion"]) == {("AD005", "match_loss")}
    assert results["runtime"].verdict is Verdict.BLOCKED


def norms_made_anew(meta):
    """A transform that puts a new node in the place of each norm, and says of it what `meta` makes of what was said
    before."""

    def apply(gm, info):
        nodes = [n for n in gm.graph.nodes if n.target is torch.ops.auto_deploy.torch_rmsnorm.default]
        for node in nodes:
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.ops.auto_deploy.torch_rmsnorm.default, node.args)
            new.meta.update(meta(node.meta))
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
        return gm, info(skipped=False, num_matches=len(nodes))

    return apply


def test_ad002_a_transform_that_loses_metadata(harness, backend, patched):
    patched("fuse_rmsnorm", norms_made_anew(lambda meta: {}))
    results = examined(backend, harness.micrographs["norm.rmsnorm"])
    assert results["fusion"].verdict is Verdict.FAIL
    assert found(results["fusion"]) == {("AD002", "metadata_loss")}


def test_ad003_a_transform_that_says_another_dtype_than_its_op_makes(harness, backend, patched):
    patched("fuse_rmsnorm", norms_made_anew(lambda meta: {**meta, "val": meta["val"].to(torch.float64)}))
    results = examined(backend, harness.micrographs["norm.rmsnorm"])
    assert found(results["fusion"]) == {("AD003", "metadata_loss")}
    assert "says f64" in results["fusion"].findings[0].detail


def test_ad004_a_transform_that_logs_other_matches_than_it_reports():
    seen = Observation()
    judge(
        seen,
        [
            PassResult("fuse_rmsnorm", "post_load_fusion", matches=2, logged="2"),
            PassResult("fuse_gemms", "x", logged="0"),
        ],
    )
    assert seen.findings == []
    judge(seen, [PassResult("fuse_rmsnorm", "post_load_fusion", matches=2, logged="1")])
    assert found(seen) == {("AD004", "match_loss")}
    assert seen.findings[0].detail == "fuse_rmsnorm logs 1, and reports 2"


class ReadLater(Micrograph):
    """Add and norm, which one kernel does in place, and a summand that is read afterwards."""

    dims = {"n": 4}
    inputs = (Tensor("n 16", torch.bfloat16), Tensor("n 16", torch.bfloat16), Tensor("16", torch.bfloat16))
    contract = Contract()

    def forward(self, x, residual, weight):
        total = x + residual
        wide = total.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * wide.to(x.dtype), total, x * 2


def test_ad006_a_value_that_is_read_after_a_fused_kernel_wrote_into_it(backend):
    results = examined(backend, ReadLater)
    assert found(results["fusion"]) == {("AD006", "wrong_result")}
    assert (
        "is read by" in results["fusion"].findings[0].detail
        and "(flashinfer kernels)" in results["fusion"].findings[0].detail
    )


def test_a_transform_that_computes_something_else_is_blamed(harness, backend, patched):
    def apply(gm, info):
        node = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.add.Tensor)
        node.target = torch.ops.aten.sub.Tensor
        return gm, info(skipped=False, num_matches=0)

    patched("match_l2norm_pattern", apply)
    results = examined(backend, harness.micrographs["norm.add_rmsnorm"])
    assert results["postgrad"].verdict is Verdict.FAIL
    assert {f.kind.value for f in results["postgrad"].findings} == {"wrong_result"}


def test_ad001_a_transform_that_dies_is_an_error_of_its_stage(harness, backend, patched):
    def apply(gm, info):
        raise KeyError("val")

    patched("match_l2norm_pattern", apply)
    results = examined(backend, harness.micrographs["norm.rmsnorm"])
    assert results["postgrad"].verdict is Verdict.ERROR
    assert results["postgrad"].reason == "match_l2norm_pattern failed: KeyError: 'val'"
    assert found(results["postgrad"]) == {("AD001", "crash")}


def test_a_transform_that_is_skipped_on_error_is_a_fallback(harness, backend, patched, monkeypatch):
    from conformance.backends.autodeploy import plan

    def apply(gm, info):
        raise KeyError("val")

    patched("match_l2norm_pattern", apply)
    default = plan.default_config(harness.loaded)
    default["match_l2norm_pattern"]["skip_on_error"] = True
    monkeypatch.setattr(plan, "default_config", lambda loaded: default)
    results = examined(backend, harness.micrographs["norm.rmsnorm"])
    assert results["postgrad"].verdict is Verdict.FALLBACK
    assert results["postgrad"].reason == "match_l2norm_pattern failed: 'val'"


def test_what_comes_after_a_failed_stage_is_not_observed(harness):
    compiled = AutoDeployCompiled(harness.passes, Case(Trained, CPU))
    assert compiled.observe(Stage.FUSION) == Observation.says(Verdict.BLOCKED, "an earlier stage failed")
    assert compiled.at(Stage.FUSION) is None
    assert compiled.blame(RuntimeError()) is Stage.CAPTURE

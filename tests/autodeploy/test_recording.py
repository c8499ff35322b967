"""The compile backends of a GPU, with CUDA graphs pretended (`recording.py`): AutoDeploy's own capturing and replaying
run."""

from __future__ import annotations

import pytest
import torch
from recording import OnCPU, Recorded, pretended

from conformance.backends.autodeploy import AutoDeployBackend
from conformance.backends.autodeploy.runtime import unrecordable
from conformance.backends.base import Case
from conformance.contract import Capture, Contract
from conformance.examine import examine
from conformance.expectations import Expectations
from conformance.inputs import Scalar, Tensor
from conformance.judge import Judge, is_wrong
from conformance.library import load
from conformance.micrograph import Micrograph
from conformance.stage import Stage
from conformance.target import CPU, Target
from conformance.verdict import Verdict

CUDA = Target.parse("cuda")


@pytest.fixture
def examined(harness, monkeypatch):
    backend = AutoDeployBackend()
    monkeypatch.setattr(backend, "unavailable", lambda target: {})

    def results(micrograph):
        Recorded.replays = 0
        with pretended(harness.loaded):
            trace = examine(OnCPU(micrograph, CUDA), backend, stop=lambda trace: is_wrong(trace, micrograph))
        judged = Judge(Expectations([], {})).results(trace, micrograph)
        return {stage.value: result for stage, result in judged.items()}

    return results


class TwoProducts(Micrograph):
    """Two matmuls of one input: AutoDeploy can put the larger on a stream of its own."""

    dims = {"b": 6}
    inputs = (Tensor("b 16"), Scalar(2.0))
    contract = Contract(capture=Capture(recompiles={"b": 1}))

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Linear(16, 8), torch.nn.Linear(16, 24)

    def forward(self, x, factor):
        return torch.cat((self.one(x), self.two(x)), dim=-1) * factor


def test_a_recording_is_replayed_with_other_values_and_all_ways_agree(examined):
    results = examined(TwoProducts)
    assert {result.verdict for result in results.values()} == {Verdict.PASS}, results["runtime"].reason
    facts = results["runtime"].observation.facts
    assert facts["compile_backend"] == "torch-cudagraph"
    assert facts["multi_stream"]["multi_stream_gemm"] == 1
    assert Recorded.replays >= 20 + 4
    assert results["cache"].observation.facts == {"captured": 1, "shapes": [[6, 16]]}


class Stale(TwoProducts):
    """Two matmuls again, from an input of three."""

    dims = {"b": 5}


def test_a_recording_that_reads_old_memory_is_seen(examined, harness, monkeypatch):
    """What no copy into its buffers reaches: the values of the capture. The graph is right, and so are the first calls:
    what is wrong is the replay."""
    module = harness.loaded.module("compile.backends.torch_cudagraph")
    forward = module.CapturedGraph.forward
    calls = []

    def forgetful(self, *args, **kwargs):
        calls.append(1)
        if len(calls) < 5:
            return forward(self, *args, **kwargs)
        self.cudagraphs[next(iter(self.cudagraphs))].replay()
        return self._out_spec.unflatten(self._out_buffer_flat)

    monkeypatch.setattr(module.CapturedGraph, "forward", forgetful)
    results = examined(Stale)
    assert results["runtime"].verdict is Verdict.FAIL
    assert {finding.kind.value for finding in results["runtime"].findings} == {"replay_mismatch"}


class Total(Micrograph):
    """A number's worth of output."""

    dims = {"b": 3}
    inputs = (Tensor("b 4"),)
    contract = Contract(capture=Capture(recompiles={"b": 1}))

    def forward(self, x):
        return x.sum()


class Writes(Total):
    """Writes into its input."""

    def forward(self, x):
        return x.mul_(2) + 1


class Views(Total):
    """Returns a view of its input."""

    def forward(self, x):
        return x.view(-1)


class Named(Total):
    """Returns a number beside a tensor."""

    def forward(self, x):
        return x + 1, 3


class NumberFirst(Total):
    """A number comes before the tensor."""

    inputs = (Scalar(2.0), Tensor("b 4"))

    def forward(self, factor, x):
        return x * factor


def test_a_number_may_come_first(examined):
    results = examined(NumberFirst)
    assert results["runtime"].verdict is Verdict.PASS, results["runtime"].reason
    assert Recorded.replays >= 20


class Spread(Total):
    """One value, expanded."""

    def forward(self, x):
        return x.sum().expand(5, 5)


@pytest.mark.parametrize(
    ("micrograph", "said"),
    [
        (Total, "output 0 has no dim 0"),
        (Writes, "no input is a tensor that is only read"),
        (Views, "output 0 shares memory with input 0"),
        (Named, "output 1 is no tensor (int)"),
        (Spread, "output 0 has many elements in one place"),
    ],
)
def test_what_a_recording_cannot_hold_is_named(micrograph, said):
    assert said in unrecordable(OnCPU(micrograph, CUDA))


def test_what_a_recording_cannot_hold_runs_without_and_is_a_fallback(examined):
    results = examined(Writes)
    assert results["runtime"].verdict is Verdict.FALLBACK
    assert results["runtime"].reason.startswith("no CUDA graph: no input is a tensor that is only read")
    assert results["codegen"].verdict is Verdict.PASS
    assert Recorded.replays == 0


def test_an_input_that_is_written_is_a_resource_at_one_address(examined, harness):
    results = examined(harness.micrographs["kv_cache.index_copy"])
    assert results["runtime"].verdict is Verdict.PASS, results["runtime"].reason
    assert Recorded.replays >= 20


def test_an_input_that_a_fused_kernel_overwrites_is_told(examined, harness):
    results = examined(harness.micrographs["norm.decoder_block"])
    assert results["runtime"].verdict is Verdict.PASS, results["fusion"].reason
    assert results["runtime"].observation.facts["overwrites"] == ["input 0", "input 1"]


def test_a_capture_that_fails_is_a_fallback_with_the_reason(examined, harness, monkeypatch):
    def fails(self, *_):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(harness.loaded.module("compile.backends.torch_cudagraph").CapturedGraph, "capture_graph", fails)
    results = examined(TwoProducts)
    assert results["runtime"].verdict is Verdict.FALLBACK
    assert "does not capture it: RuntimeError: operation not permitted" in results["runtime"].reason


@pytest.mark.parametrize(
    ("name", "transform"),
    [
        pytest.param("upstream.autodeploy.routed_and_shared_experts", "multi_stream_moe", marks=pytest.mark.slow),
        ("upstream.autodeploy.latent_projections", "multi_stream_mla_attn"),
    ],
)
def test_work_for_a_second_stream_is_found_and_agrees(examined, name, transform):
    results = examined(load()[name])
    assert results["runtime"].verdict in (Verdict.PASS, Verdict.FALLBACK), results["runtime"].reason
    assert results["runtime"].observation.facts["multi_stream"][transform] == 1


def test_a_layer_that_is_called_twice_is_no_pair_of_products_of_one_input(examined):
    """multi_stream_mla_attn takes the weight for the input that two products share: the second one reads the first one's result too early."""
    result = examined(load()["upstream.autodeploy.one_layer_twice"])["runtime"]
    assert {finding.check for finding in result.findings} == {"AD007"}
    assert "reads relu on the second stream and does not wait for the main stream" in result.reason


def test_it_shows_where_no_gpu_is_pretended(harness) -> None:
    micrograph = load()["upstream.autodeploy.one_layer_twice"]
    trace = examine(Case(micrograph, CPU), AutoDeployBackend())
    result = Judge(Expectations([], {})).results(trace, micrograph)[Stage.RUNTIME]
    assert {finding.check for finding in result.findings} == {"AD007"}

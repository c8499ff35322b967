"""AutoDeploy's own passes, on micrographs: what fuses, what must not, what stays known of every node."""

from __future__ import annotations

import operator

import pytest
import torch
from torch import fx

from conformance.autodeploy import legacy as older
from conformance.autodeploy.harness import CHAINS
from conformance.autodeploy.legacy import Broken
from conformance.backends.autodeploy import graph, plan
from conformance.errors import UsageError
from conformance.stage import Stage

FUSED = "flashinfer_fused_add_rms_norm"


def ops(gm: fx.GraphModule) -> dict[str, int]:
    return graph.op_counts(gm)


# ----------------------------------------------------------------------------------------------- RMSNorm fusion

COUNTS = {
    # micrograph → rmsnorm found, add+rmsnorm fused with flashinfer kernels
    "norm.rmsnorm": (1, 0),
    "norm.add_rmsnorm": (1, 1),
    "norm.decoder_block": (2, 2),
    "norm.decoder_block_tapped": (2, 2),
    "norm.add_two_norms": (2, 1),
    "norm.rmsnorm_two_consumers": (0, 0),
    "norm.rmsnorm_mixed_consumers": (0, 0),
    "norm.layer_norm": (0, 0),
}


@pytest.mark.parametrize("micrograph", COUNTS)
def test_norms_are_found_and_fused_exactly_so_often(harness, micrograph):
    found, fused = COUNTS[micrograph]
    report = harness.run("fuse_norm", micrograph)
    assert {result.name: result.matches for result in report.results} == {
        "match_rmsnorm_pattern": found,
        "fuse_rmsnorm": found,
        "fuse_add_rms_norm": fused,
    }
    assert ops(report.after).get(FUSED, 0) == fused
    assert report.lost_metadata == [] and report.wrong_metadata == [] and report.lost_reads == []
    assert report.differences() == []
    assert report.from_eager() == []


@pytest.mark.parametrize(("option", "fused"), [("flashinfer", 2), ("triton", 0), ("torch", 0)])
def test_only_flashinfer_has_the_fused_kernel(harness, option, fused):
    report = harness.run("fuse_add_rms_norm", "norm.decoder_block", option)
    assert report.matches == fused
    assert report.added == ({FUSED: 2} if fused else {})
    assert report.differences() == []


def test_what_is_logged_is_what_is_reported(harness):
    report = harness.run("fuse_norm", "norm.decoder_block")
    assert [(result.logged, result.log_disagrees) for result in report.results] == [
        ("2", False),
        ("2", False),
        ("2", False),
    ]


def test_a_fused_kernel_that_writes_into_a_value_still_needed_is_seen(harness):
    """fuse_add_rms_norm does not ask who else reads the summands, which the kernel overwrites."""

    class ReadAgain(harness.micrographs["norm.add_rmsnorm"]):
        def forward(self, x, residual):
            normed, total = super().forward(x, residual)
            return normed, total, x * 2

    report = harness.run("fuse_add_rms_norm", ReadAgain)
    assert report.matches == 1
    assert any("is read by" in lost for lost in report.lost_reads)
    assert [str(d.where) for d in report.differences()] == ["output 2"]


# ----------------------------------------------------------------------------------------- functionalization fix


def test_auto_functionalized_goes_back_in_place_and_loses_no_read(harness):
    if not harness.legacy.has("fix_functionalization"):
        pytest.skip("this checkout has no functionalization fix, neither AutoDeploy's nor the older one")
    report = harness.run("fix_functionalization", "norm.decoder_block")
    assert report.matches == 2
    assert report.removed == {"auto_functionalized": 2}
    assert report.added == {"trtllm.flashinfer_fused_add_rmsnorm": 2}
    assert report.differences() == []
    assert report.from_eager() == []


def test_nothing_to_fix_is_zero(harness):
    if not harness.legacy.has("fix_functionalization"):
        pytest.skip("this checkout has no functionalization fix")
    report = harness.run("fix_functionalization", "norm.rmsnorm")
    assert (report.matches, report.added, report.removed) == (0, {}, {})


def test_a_read_that_the_fix_loses_is_seen(harness):
    """The older pass trusts that nobody reads the overwritten argument afterwards. When somebody does, values
    differ."""
    if not harness.legacy.has("fix_functionalization"):
        pytest.skip("this checkout has no functionalization fix")
    report = harness.run("fix_functionalization", "norm.add_rmsnorm")
    gm = graph.copied(report.before)
    source = next(node for node in gm.graph.nodes if node.op == "placeholder")
    output = next(node for node in gm.graph.nodes if node.op == "output")
    with gm.graph.inserting_before(output):
        late = gm.graph.call_function(torch.ops.aten.mul.Tensor, (source, 2))
    kept = output.args[0]
    output.args = ((late, *kept[1:]),)
    gm.recompile()
    report.before, report.after = gm, harness.legacy.run("fix_functionalization", gm).after
    assert [d.where for d in report.differences(exact=False)] == ["output 0"]


def test_the_older_norm_fusion(harness):
    if not harness.legacy.has("fuse_norm"):
        pytest.skip("this checkout has no older norm fusion")
    try:
        report = harness.run_legacy("fuse_norm", "norm.decoder_block")
    except Broken as error:
        pytest.skip(str(error))
    assert report.matches == 2
    assert report.differences() == []


def test_names_that_are_declared_for_a_pass_are_gone_afterwards(harness):
    with older.declared() as declare:
        with pytest.raises(AttributeError) as error:
            torch.ops.trtllm.an_op_that_nobody_has.default  # noqa: B018
        declare(error.value)
        torch.ops.trtllm.an_op_that_nobody_has.default  # noqa: B018
    with pytest.raises(AttributeError):
        torch.ops.trtllm.an_op_that_nobody_has.default  # noqa: B018


# ------------------------------------------------------------------------------------------------ any transform


def test_every_transform_runs_on_the_decoder_block_or_says_why_not(harness):
    report = harness.run("fuse_add_rms_norm", "norm.decoder_block")
    states = {result.name: (result.state, result.reason) for result in (*report.earlier, *report.results)}
    assert {name: state for name, state in states.items() if state[0] == "failed"} == {}
    assert all(reason for state, reason in states.values() if state == "unavailable")
    assert {state for state, _ in states.values()} <= {"ran", "skipped", "disabled", "unavailable"}
    assert len(states) > 30


LOSERS = {
    # transform → micrograph, kernels, nodes without metadata: these leave shapes to the next propagation
    "fuse_swiglu": ("mlp.swiglu", "torch", ["fused_swiglu_gate_up_0", "fused_swiglu_mlp_default"]),
}


@pytest.mark.parametrize("name", LOSERS)
def test_metadata_that_a_transform_is_known_to_leave_out_is_seen(harness, name):
    micrograph, option, lost = LOSERS[name]
    report = harness.run(name, micrograph, option)
    assert (report.matches, report.lost_metadata) == (1, lost)
    assert name in plan.SHAPES_LATER
    assert report.differences() == []


def test_swiglu_and_its_twin(harness):
    assert harness.run("match_swiglu_pattern", "mlp.swiglu").matches == 1
    twin = harness.run("match_swiglu_pattern", "mlp.swiglu_tapped")
    assert (twin.matches, twin.added, twin.removed) == (0, {}, {})


def test_unknown_names_suggest_near_ones(harness):
    with pytest.raises(UsageError, match=r"unknown transform 'fuse_rms_norms': did you mean .*fuse_rmsnorm"):
        harness.run("fuse_rms_norms")
    with pytest.raises(UsageError, match="unknown micrograph"):
        harness.run("fuse_rmsnorm", "norm.nothing")
    with pytest.raises(UsageError, match="unknown kernel option"):
        harness.run("fuse_rmsnorm", option="cutlass")
    with pytest.raises(UsageError, match="needs a whole language model"):
        harness.run("load_weights")


# --------------------------------------------------------------------- transforms that do wrong, and are caught


@pytest.fixture
def wrongdoer(harness):
    """Registers a transform for the time of a test: `wrongdoer(apply)` gives a function that runs it."""
    interface = harness.loaded.module("transform.interface")
    names = []

    def make(apply, **settings):
        name = f"wrongdoer_{len(names)}"
        cls = type(
            "Wrongdoer", (interface.BaseTransform,), {"_apply": lambda self, gm, *_: apply(gm, interface.TransformInfo)}
        )
        interface.TransformRegistry.register(name)(cls)
        names.append(name)
        return harness.run(name, "norm.decoder_block", "torch", **settings)

    yield make
    for name in names:
        del interface.TransformRegistry._registry[name]


def first_add(gm: fx.GraphModule) -> fx.Node:
    return next(node for node in gm.graph.nodes if node.target is torch.ops.aten.add.Tensor)


def test_a_new_node_without_metadata(wrongdoer):
    def apply(gm, info):
        node = first_add(gm)
        with gm.graph.inserting_after(node):
            new = gm.graph.call_function(torch.ops.aten.neg.default, (node,))
        node.replace_all_uses_with(new, lambda user: user is not new)
        return gm, info(skipped=False, num_matches=1)

    report = wrongdoer(apply)
    assert report.lost_metadata == ["neg_default"]
    assert [d.where for d in report.differences()] == ["output 0", "output 1"]


def test_a_new_node_with_the_wrong_metadata(wrongdoer):
    def apply(gm, info):
        node = first_add(gm)
        with gm.graph.inserting_after(node):
            new = gm.graph.call_function(torch.ops.aten.clone.default, (node,))
            new.meta["val"] = node.meta["val"].to(torch.float32)
        node.replace_all_uses_with(new, lambda user: user is not new)
        return gm, info(skipped=False, num_matches=1)

    report = wrongdoer(apply)
    assert report.lost_metadata == []
    assert len(report.wrong_metadata) == 1 and "says f32" in report.wrong_metadata[0]


def test_swapped_operands_of_a_difference(wrongdoer):
    def apply(gm, info):
        first_add(gm).target = torch.ops.aten.sub.Tensor
        return gm, info(skipped=False, num_matches=1)

    assert wrongdoer(apply).differences() != []


def test_a_crash_is_failed_and_leaves_the_graph_as_it_was(wrongdoer):
    def apply(gm, info):
        first_add(gm).target = operator.sub
        raise ValueError("half-way")

    report = wrongdoer(apply)
    assert [(r.state, r.reason, r.tolerated) for r in report.results] == [("failed", "ValueError: half-way", False)]
    assert graph.listing(report.before) == graph.listing(report.after)


def test_a_crash_that_is_tolerated_is_told_with_its_exception(wrongdoer):
    def apply(gm, info):
        raise ValueError("swallowed")

    report = wrongdoer(apply, skip_on_error=True)
    assert [(r.state, r.reason, r.tolerated) for r in report.results] == [("failed", "swallowed", True)]


def test_an_op_that_the_sources_do_not_define_is_no_excuse(wrongdoer):
    def apply(gm, info):
        torch.ops.auto_deploy.an_op_that_was_renamed.default  # noqa: B018

    assert [r.state for r in wrongdoer(apply).results] == ["failed"]


def test_the_chain_of_the_seed_is_registered(harness):
    assert all(harness.passes.registry.has(name) for name in CHAINS["fuse_norm"])
    config = plan.configured(harness.loaded, "flashinfer")
    assert {*CHAINS["fuse_norm"]} <= {*plan.of_stage(config, Stage.POSTGRAD), *plan.of_stage(config, Stage.FUSION)}

"""One capture for four GPUs gives the kernels that four captures give, byte for byte."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from conformance.commands.show import show
from conformance.headless import multi_target
from conformance.headless.device_queries import Asked, answered, listening
from conformance.headless.fidelity import normalised
from conformance.library import load
from conformance.target import DEVICES, Target

TARGETS = [Target.parse(name) for name in DEVICES]
SLICE = ["norm.add_rmsnorm", "dynamic.graph_break", "training.linear", "random.dropout"]
MORE = [
    "mlp.swiglu",
    "pointwise.chain",
    "reduction.softmax",
    "matmul.addmm_scaled",
    "indexing.embedding",
    "mutation.add_input",
    "dynamic.batch_and_length",
    "control_flow.cond",
    "attention.sdpa",
    "convolution.conv_bn_relu",
]


@pytest.mark.parametrize("name", [*SLICE, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_shared_and_unshared_kernels_are_the_same(name: str) -> None:
    micrograph = load()[name]
    together = multi_target.generate(micrograph, TARGETS)
    alone = multi_target.generate(micrograph, TARGETS, share=False)
    assert list(together) == list(DEVICES)
    for target in DEVICES:
        assert {k: normalised(v) for k, v in together[target].kernels.items()} == {
            k: normalised(v) for k, v in alone[target].kernels.items()
        }
    assert any(generated.shares for generated in together.values())
    assert not any(generated.shares for generated in alone.values())


def test_kernels_of_two_targets_are_not_the_same_text() -> None:
    """What the comparison rests on: a target's kernels name its device."""
    made = multi_target.generate(load()["pointwise.chain"], TARGETS)
    texts = {target: "".join(generated.kernels.values()) for target, generated in made.items()}
    assert len(set(texts.values())) == len(DEVICES)


def test_several_targets_are_shown_beside_each_other() -> None:
    shown = CliRunner().invoke(show, ["codegen/inductor/sm_[19]*0/pointwise.chain"], standalone_mode=False)
    assert shown.exit_code == 0, shown.output
    assert "def triton_" in shown.output
    assert "+++ sm_120" in shown.output and "captured with sm_90" in shown.output


def test_where_two_targets_choose_another_attention_nothing_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance.headless import attention

    monkeypatch.setattr(attention, "choice", lambda call: attention.FLASH if call.sm == 80 else attention.EFFICIENT)
    made = multi_target.generate(load()["attention.sdpa"], TARGETS)
    assert made["sm_80"].shares == made["sm_90"].shares == ""
    assert made["sm_90"].apart == ["attention kernel"]
    assert made["sm_120"].shares == "sm_90"


def test_only_what_is_answered_differently_sets_two_targets_apart() -> None:
    asked = Asked()
    with listening(asked):
        answered("warp_size", lambda device: device.warp_size, DEVICES["sm_90"])
        answered("major", lambda device: device.major, DEVICES["sm_90"])
    answered("minor", lambda device: device.minor, DEVICES["sm_90"])
    assert asked.apart("sm_90", "sm_100") == ["major"]
    assert asked.apart("sm_90", "sm_90") == []

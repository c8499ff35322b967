"""What the doctor says: one line, with the mend, for each way in which Torch-TensorRT can be missing."""

from __future__ import annotations

import pytest
import torch

from conformance.backends.torch_tensorrt import backend as backend_module
from conformance.backends.torch_tensorrt import installed as module
from conformance.backends.torch_tensorrt.backend import TorchTensorRTBackend, not_here
from conformance.backends.torch_tensorrt.installed import RTX, STANDARD, Installed, missing
from conformance.stage import STAGES, Stage
from conformance.target import Target


@pytest.fixture
def torch_214(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.14.1+cu130")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(module, "find_spec", lambda name: object())


@pytest.mark.usefixtures("torch_214")
class TestMissing:
    def test_nothing_is_missing(self) -> None:
        assert missing(Installed(RTX, "2.14.0", "1.6.1.120")) == ""

    def test_not_installed(self) -> None:
        assert missing(None, "x86_64") == "torch_tensorrt is not installed: pip install torch-tensorrt-rtx==2.14.0"

    def test_no_wheel_for_the_machine(self) -> None:
        assert "x86_64 only and this is aarch64" in missing(None, "aarch64")

    def test_no_release_for_this_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch, "__version__", "2.15.0")
        assert "no release for torch 2.15: install torch of 2.11, 2.12, 2.13, 2.14" in missing(None, "x86_64")

    def test_torch_of_another_minor_version(self) -> None:
        said = missing(Installed(RTX, "2.11.0", "1.4.0.76"))
        assert "torch-tensorrt-rtx 2.11.0 needs torch 2.11, this is torch 2.14.1" in said
        assert said.endswith("pip install torch-tensorrt-rtx==2.14.0")

    def test_torch_for_the_cpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch, "__version__", "2.14.1+cpu")
        monkeypatch.setattr(torch.version, "cuda", None)
        assert "is a CPU-only build" in missing(Installed(RTX, "2.14.0", "1.6.1.120"))

    def test_standard_flavour_without_its_libraries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "find_spec", lambda name: None)
        assert "NVIDIA's package index" in missing(Installed(STANDARD, "2.14.0", ""))

    @pytest.mark.parametrize("found", [None, Installed(RTX, "2.11.0", ""), Installed(STANDARD, "2.11.0", "")])
    def test_one_line(self, found: Installed | None) -> None:
        assert missing(found) and "\n" not in missing(found)


@pytest.mark.usefixtures("torch_214")
class TestNotHere:
    """What can be said before the package is imported."""

    @pytest.fixture(autouse=True)
    def no_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def test_a_described_gpu_only_cannot_run(self) -> None:
        assert not_here(Installed(RTX, "2.14.0", "1.6.1.120"), Target("sm_90")) == {
            Stage.RUNTIME: "needs a CUDA device"
        }

    def test_cuda_without_a_gpu(self) -> None:
        assert set(not_here(Installed(RTX, "2.14.0", "1.6.1.120"), Target("cuda"))) == set(STAGES)

    def test_the_standard_builder_needs_a_gpu(self) -> None:
        reasons = not_here(Installed(STANDARD, "2.14.0", "11.1.0"), Target("sm_90"))
        assert set(reasons) == {Stage.CODEGEN, Stage.RUNTIME, Stage.CACHE}

    def test_not_installed_is_nowhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backend_module, "installed", lambda: None)
        backend = TorchTensorRTBackend()
        assert set(backend.unavailable(Target("sm_90"))) == set(STAGES)
        assert backend.versions() == {} and backend.seams() == ()

    def test_it_makes_no_code_for_the_cpu(self) -> None:
        assert "cpu" not in TorchTensorRTBackend().targets()
        assert TorchTensorRTBackend().default_target == "sm_90"

"""What is imported before processes are forked: nothing that starts CUDA, since no forked process could start it again."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from conformance import backends, measure


@pytest.mark.parametrize(
    ("target", "starts", "here"), [("cuda", True, False), ("cuda", False, True), ("cpu", True, True)]
)
def test_a_backend_that_starts_cuda_is_imported_by_each_process(
    target: str, starts: bool, here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: (tmp_path / "started").exists())

    def preload(_: object) -> None:
        (tmp_path / str(os.getpid())).touch()
        if starts:
            (tmp_path / "started").touch()

    backend = SimpleNamespace(unavailable=lambda target: {}, targets=lambda: ("cpu", "cuda"), preload=preload)
    monkeypatch.setattr(backends, "get", lambda name: backend)
    measure.preload([("torch_tensorrt", target)] * 2)
    assert (tmp_path / str(os.getpid())).exists() is here


def test_an_import_that_fails_in_a_fork_is_not_repeated_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def preload(_: object) -> None:
        raise RuntimeError("no")

    backend = SimpleNamespace(unavailable=lambda target: {}, targets=lambda: ("cpu", "cuda"), preload=preload)
    monkeypatch.setattr(backends, "get", lambda name: backend)
    measure.preload([("b", "cuda")])

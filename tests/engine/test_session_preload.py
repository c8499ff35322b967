"""What is imported before processes are forked: nothing that starts CUDA, since no forked process could start it again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from conformance import backends, library, measure
from conformance.plan import PlannedCase
from conformance.processes import Job
from conformance.stage import STAGES
from conformance.trace import Trace


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


def test_cases_that_share_a_process_are_examined_to_the_last_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where several cases share a CUDA context: fresh processes are forked before the files of the later ones are imported."""
    for name in [name for name in sys.modules if name.startswith(library.PACKAGE)]:  # another test's
        monkeypatch.delitem(sys.modules, name)
    server = measure.CaseServer()
    try:
        server.prepare([("inductor", "cpu")])
        cases = [PlannedCase("inductor", "cpu", name) for name in ("pointwise.broadcast", "views.identity")]
        jobs = [Job(case.micrograph, measure.measure, (case, None, 2, False), "one process") for case in cases]
        told = {
            event.job.key: event.said
            for event in server.run(jobs, size=1, limit=240, share=2)
            if isinstance(event.said, Trace)
        }
    finally:
        server.close()
    assert {name: trace.unavailable for name, trace in told.items()} == {case.micrograph: {} for case in cases}
    assert not [finding for trace in told.values() for seen in trace.observations.values() for finding in seen.findings]
    assert all(set(trace.observations) == set(STAGES) for trace in told.values())

"""What must happen before the tests of a suite are imported, where a GPU or a built package is missing.

Runs inside the interpreter under test, for suites that need the engine's own support for machines without a GPU. So
this file imports torch and `conformance`; `child.py` and `rungs.py` must not.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

sys.path.append(str(Path(__file__).resolve().parents[2]))  # for `conformance`, after everything else


class Stopped(BaseException):
    """Raised where a test would run something on a GPU. Tests do not catch it: it is no `Exception`."""

    def __init__(self, why: str, facts: dict[str, Any]) -> None:
        super().__init__(why)
        self.facts = facts


class CudaMeansCpu(TorchFunctionMode):
    """`device="cuda"`, `.to("cuda")` and `.cuda()` leave a tensor on the CPU; memory is not pinned."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {name: _on_cpu(value) for name, value in (kwargs or {}).items()}
        if getattr(func, "__name__", "") == "cuda" and args and isinstance(args[0], torch.Tensor):
            return args[0]
        if getattr(func, "__name__", "") == "pin_memory":
            return args[0]
        kwargs.pop("pin_memory", None)
        return func(*(_on_cpu(value) for value in args), **kwargs)


def _on_cpu(value: Any) -> Any:
    if (isinstance(value, str) and value.startswith("cuda")) or (
        isinstance(value, torch.device) and value.type == "cuda"
    ):
        return "cpu" if isinstance(value, str) else torch.device("cpu")
    return value


class Bootstrap:
    """Started before the tests are imported; told when all are collected and when one begins."""

    def __init__(self) -> None:
        self.kept = ExitStack()  # contexts that hold for as long as the process lives

    def start(self, settings: dict[str, Any]) -> None:
        raise NotImplementedError

    def collected(self) -> None:
        """Every test file is imported; tests have decided by now whether they skip themselves."""

    def begin(self) -> None:
        """A test begins."""


class AutoDeploy(Bootstrap):
    """AutoDeploy from the unbuilt checkout whose tests are run. Without a GPU, `cuda` means the CPU."""

    def start(self, settings: dict[str, Any]) -> None:
        from conformance.backends.autodeploy import fake_cuda, loader

        self.kept.enter_context(loader.load(settings["root"]).active())
        if not torch.cuda.is_available():
            self.kept.enter_context(fake_cuda.answers())
            self.kept.enter_context(CudaMeansCpu())


class TorchTensorRT(Bootstrap):
    """Torch-TensorRT for a described GPU: engines are built, and a test is stopped where it would run one."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[int] = []  # sizes of the engines built by the test that runs
        self.collecting = ExitStack()  # holds until every test has decided whether it skips itself

    def start(self, settings: dict[str, Any]) -> None:
        from conformance.backends.torch_tensorrt import engine
        from conformance.backends.torch_tensorrt.seam import described, outside, seam, staying_on_cpu
        from conformance.target import DEVICES

        if torch.cuda.is_available():
            importlib.import_module("torch_tensorrt")
            return

        self.kept.enter_context(described(DEVICES["sm_90"]))
        built = self.built

        class Runtime(engine.PlanRuntime):
            def deserialize_cuda_engine(self, data: Any) -> Any:
                built.append(len(bytes(data)) if data is not None else 0)
                return super().deserialize_cuda_engine(data)

        self.kept.enter_context(
            seam.replace(tensorrt_runtime=Runtime, device_to=lambda self, kind: torch.device("cpu"))
        )
        self.kept.enter_context(staying_on_cpu())
        self.kept.enter_context(outside.replace(**dict.fromkeys(("Event", "Stream", "CUDAGraph"), self.stop)))
        instead = {
            "engine_setup": lambda self: None,
            "engine_outputs": lambda self, enabled: None,
            "engine_handle": self.stop,
            "engine_run": self.stop,
        }
        self.kept.enter_context(seam.replace(**{key: call for key, call in instead.items() if seam.has(key)}))
        self.collecting.enter_context(outside.replace(is_available=lambda: True))
        self.kept.enter_context(CudaMeansCpu())

    def stop(self, *_: Any, **__: Any) -> Any:
        raise Stopped("running an engine needs a GPU", {"engines": len(self.built), "engine_bytes": sum(self.built)})

    def collected(self) -> None:
        self.collecting.close()

    def begin(self) -> None:
        self.built.clear()


STARTS: dict[str, type[Bootstrap]] = {"autodeploy": AutoDeploy, "torch_tensorrt": TorchTensorRT}


def start(name: str, settings: dict[str, Any]) -> Bootstrap:
    """Do what the suite's map asks for with `bootstrap = "…"`."""
    bootstrap = STARTS[name]()
    bootstrap.start(settings)
    return bootstrap

"""The OpenVINO backend: `torch.compile(module, backend="openvino")` on the CPU, in float32."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from conformance.backends.base import Backend, Case, Compiled, all_unavailable
from conformance.inputs import Tensor
from conformance.seam import Seam
from conformance.stage import Stage
from conformance.target import Target
from conformance_openvino.seam import installed, seam

FRONT_END = ("dynamic", "fullgraph")  # the options of torch.compile that are Dynamo's; the others are Inductor's
REPRO = """
import openvino.torch  # noqa: F401


def compiled(module):
    return torch.compile(module, backend="openvino", options={"config": {"INFERENCE_PRECISION_HINT": "f32"}})
"""


class OpenVINOBackend(Backend):
    name = "openvino"
    package = "openvino"  # whose releases `conformance bisect` installs
    expectations = Path(__file__).parent / "expectations"  # what is known to be wrong

    def versions(self) -> dict[str, str]:
        return {"openvino": installed(), "torch": str(torch.__version__)} if installed() else {}

    def seams(self) -> tuple[Seam, ...]:
        return (seam,)

    def unavailable(self, target: Target) -> dict[Stage, str]:
        if not installed():
            return all_unavailable("needs OpenVINO: pip install openvino")
        return seam.unavailable()

    def compile(self, case: Case) -> Compiled:
        from conformance_openvino.compiled import OpenVINOCompiled

        return OpenVINOCompiled(self, case)

    def preload(self, target: Target) -> None:
        with warnings.catch_warnings():  # it sets an option that torch has dropped
            warnings.simplefilter("ignore", FutureWarning)
            import openvino.torch  # noqa: F401  registers the backend; starts no threads

    def settings_changed(self) -> dict[str, str]:
        return {
            "INFERENCE_PRECISION_HINT = f32": "by default OpenVINO computes in half precision where the CPU can",
            "INFERENCE_NUM_THREADS": "as many as torch has: the processes of a run share the machine",
        }

    # ---------------------------------------------------------------------------------------------- Jit

    def compile_entry(self, module: Any, **options: Any) -> Callable[..., Any]:
        config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads()}
        kept = {name: value for name, value in options.items() if name in FRONT_END}
        own = {"config": config, **options.get("openvino", {})}
        return torch.compile(module, backend="openvino", options=own, **kept)

    def marked(self, case: Case, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        capture = case.micrograph.contract.capture
        for spec, value in zip(case.micrograph.inputs, inputs, strict=True):
            if not isinstance(spec, Tensor):
                continue
            for index, name in enumerate(spec.names()):
                used = set(re.findall(r"[a-z]\w*", name))
                if used & {*capture.unbacked}:
                    torch._dynamo.decorators.mark_unbacked(value, index)
                elif used & {*capture.dynamic} and value.shape[index] > 1:
                    torch._dynamo.mark_dynamic(value, index)
        return inputs

    @contextmanager
    def settings(self, case: Case) -> Iterator[None]:
        """Micrographs set options of Dynamo, Inductor and AOTAutograd; only Dynamo's are OpenVINO's, too."""
        wanted = case.micrograph.settings.items()
        dynamo = {name.removeprefix("dynamo."): value for name, value in wanted if name.startswith("dynamo.")}
        with torch._dynamo.config.patch(**dynamo):
            yield

    # ------------------------------------------------------------------------------------------- HasRepro

    def repro_entry(self, stage: str) -> tuple[str, str] | None:
        return "compiled", REPRO.strip("\n")

"""Which stage of which PyTorch compiler moved: the same small graphs through every compiler, every stage checked.

What a micrograph, a check or a backend is made of can be imported from here: `from conformance import Micrograph, Tensor, Contract`.
Names are imported when they are first used, so that commands which need no torch do not import it.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# To ask whether there is a GPU must not make a CUDA context: processes are forked. Before any module can ask.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

_HOMES = {
    "conformance.micrograph": ("Micrograph", "parameter", "weight"),
    "conformance.inputs": ("Scalar", "Tensor", "Value"),
    "conformance.contract": (
        "Cache",
        "Capture",
        "Codegen",
        "Contract",
        "Decomposition",
        "Fusion",
        "PostGrad",
        "Runtime",
    ),
    "conformance.backends.base": ("Backend", "CannotRun", "Case", "Compiled"),
    "conformance.checks": ("Seen", "check"),
    "conformance.stage": ("STAGES", "Stage"),
    "conformance.target": ("Target",),
    "conformance.trace": ("Observation", "Trace"),
    "conformance.verdict": ("Finding", "Kind", "Verdict"),
}
_WHERE = {name: module for module, names in _HOMES.items() for name in names}
__all__ = [
    "STAGES",
    "Backend",
    "Cache",
    "CannotRun",
    "Capture",
    "Case",
    "Codegen",
    "Compiled",
    "Contract",
    "Decomposition",
    "Finding",
    "Fusion",
    "Kind",
    "Micrograph",
    "Observation",
    "PostGrad",
    "Runtime",
    "Scalar",
    "Seen",
    "Stage",
    "Target",
    "Tensor",
    "Trace",
    "Value",
    "Verdict",
    "__version__",
    "check",
    "parameter",
    "weight",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'conformance' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from conformance.backends.base import Backend, CannotRun, Case, Compiled
    from conformance.checks import Seen, check
    from conformance.contract import Cache, Capture, Codegen, Contract, Decomposition, Fusion, PostGrad, Runtime
    from conformance.inputs import Scalar, Tensor, Value
    from conformance.micrograph import Micrograph, parameter, weight
    from conformance.stage import STAGES, Stage
    from conformance.target import Target
    from conformance.trace import Observation, Trace
    from conformance.verdict import Finding, Kind, Verdict

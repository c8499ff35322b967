"""The interpreter that the tests run in: is there a torch, and which?"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.errors import UsageError

PACKAGES = (
    "torch",
    "triton",
    "torch_tensorrt",
    "torch-tensorrt-rtx",
    "tensorrt_rtx",
    "tensorrt",
    "tensorrt_llm",
    "transformers",
    "pytest",
)
SCRIPT = f"""
import json, platform
from importlib.metadata import PackageNotFoundError, version
found = {{"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}}
found["packages"] = {{}}
for name in {PACKAGES!r}:
    try:
        found["packages"][name] = version(name)
    except PackageNotFoundError:
        pass
try:
    import torch
    found["torch"] = torch.__version__
    found["cpu"] = torch.backends.cpu.get_cpu_capability()
    found["threads"] = torch.get_num_threads()
    found["gpus"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
    found["gpu"] = torch.cuda.get_device_name() if found["gpus"] else None
except ImportError as error:
    found["error"] = str(error)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python with torch and pytest, and what is installed in it."""

    path: Path
    facts: dict[str, Any]

    @property
    def torch(self) -> str:
        return self.facts["torch"]

    @property
    def gpus(self) -> int:
        return self.facts["gpus"]

    @property
    def packages(self) -> dict[str, str]:
        """Versions by the name that people import; the RTX flavour of Torch-TensorRT is `torch_tensorrt`, too."""
        found = dict(self.facts["packages"])
        if rtx := found.pop("torch-tensorrt-rtx", None):
            found.setdefault("torch_tensorrt", rtx)
        return {**found, "torch": self.torch}


def open_interpreter(path: str | None) -> Interpreter:
    """Ask an interpreter what it has; one without torch or pytest is the user's mistake."""
    python = Path(path or sys.executable).expanduser()
    try:
        done = subprocess.run([str(python), "-c", SCRIPT], capture_output=True, text=True, timeout=300)
    except OSError as error:
        raise UsageError(
            f"--python {python}: {error.strerror or error}; name the python of an environment with torch"
        ) from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"--python {python}: importing torch took more than 300 s") from None
    lines = done.stdout.strip().splitlines()
    try:
        facts = json.loads(lines[-1])
    except (IndexError, ValueError):
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise UsageError(f"--python {python} is no usable Python: it said {said[:200]!r}") from None
    for name in ("torch", "pytest"):
        if name not in facts["packages"] or "error" in facts:
            why = f" ({facts['error']})" if "error" in facts else ""
            raise UsageError(
                f"{python} has no {name}{why}: install it there, or name another interpreter with --python"
            )
    return Interpreter(python.absolute(), facts)

"""What a run ran on, and a fingerprint of everything that could change its answers."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import Any

import torch

from conformance import backends, paths
from conformance.processes import in_fork
from conformance.record import SCHEMA
from conformance.revision import commit, digest, revision

WATCHED = ("TORCH", "PYTORCH", "TRITON", "CUDA", "OMP", "MKL", "CXX", "CC", "TRTLLM", "AD_")
# Modules that produce facts, whatever the backend.
MEASURING = ("examine", "further_calls", "graphs", "inputs", "ladder", "layouts", "seam", "trace")


@cache
def gpu() -> str | None:
    """The name of the GPU, asked in a process of its own: whoever asks makes a CUDA context, and cannot fork any more."""
    return in_fork(torch.cuda.get_device_name) if torch.cuda.is_available() else None


@cache
def environment() -> dict[str, Any]:
    found = {name: backends.get(name).versions() for name in backends.names()}
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "gpu": gpu(),
        "backends": {name: versions for name, versions in found.items() if versions},
    }


def versions(env: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Flat, for the version conditions of expectations: of this environment, or of that in a record's header."""
    env = environment() if env is None else env
    flat = {key: str(env.get(key)) for key in ("python", "machine", "gpu")}
    for found in env.get("backends", {}).values():
        flat |= found
    return flat | {"torch": str(env.get("torch", ""))}


@cache
def producers() -> dict[str, str]:
    """For each backend, a digest of the code that produces its facts: facts of two records are comparable where it is the same."""
    shared = [paths.PACKAGE / f"{name}.py" for name in MEASURING]
    shared += paths.PACKAGE.glob("oracle/*.py")
    found = {}
    for name in backends.names():
        module = type(backends.get(name)).__module__
        own = Path(str(sys.modules[module].__file__))
        files = sorted(own.parent.glob("*.py")) if own.parent.name != "backends" else [own]
        extra = sorted(paths.PACKAGE.glob("headless/*.py")) if own.parent.name == "inductor" else []
        found[name] = digest([*sorted(shared), *files, *extra])
    return found


@cache
def fingerprint() -> str:
    """Changes when anything changes that a cell's answer may depend on: the suite, the packages on disk (a file of torch that
    was edited included), settings in the environment, start-up hooks."""
    hashed = hashlib.sha256(digest(sorted(paths.PACKAGE.glob("**/*.py"))).encode())
    hashed.update(repr(sorted((k, v) for k, v in os.environ.items() if k.startswith(WATCHED))).encode())
    hashed.update(repr([sys.version, sys.path, environment()["cpu"]]).encode())
    for package in sorted(_packages()):
        for entry in sys.path:
            if (folder := Path(entry or ".") / package).is_dir():
                hashed.update(_stat(folder))
                break
    for name in ("sitecustomize", "usercustomize"):
        if (module := sys.modules.get(name)) and getattr(module, "__file__", None):
            hashed.update(_stat(Path(str(module.__file__)).parent, f"{name}.py"))
    return hashed.hexdigest()[:16]


def _packages() -> set[str]:
    """The packages that answers come from: compilers, and adapters that are not the suite's own."""
    found = {"torch", "triton", "torch_tensorrt", "tensorrt_rtx"}
    for backend in map(backends.get, backends.names()):
        found |= {type(backend).__module__.split(".")[0], *backend.versions()}
    return found - {paths.PACKAGE.name}


def _stat(folder: Path, pattern: str = "*.py") -> bytes:
    """Sizes and times of a package's sources: a hundred times cheaper than reading them."""
    hashed = hashlib.sha256()
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in ("__pycache__", "include", "test"))
        for name in sorted(files):
            if name.endswith((".py", ".so")) or name == pattern:
                stat = os.stat(os.path.join(path, name))
                hashed.update(f"{path}/{name} {stat.st_size} {stat.st_mtime_ns}".encode())
    return hashed.digest()


def _without_folder(word: str) -> str:
    """A record says what was run, not where somebody keeps files."""
    option, equals, path = word.rpartition("=")
    return f"{option}{equals}{Path(path).name}" if Path(path).is_absolute() else word


def header(argv: list[str], expectations: str) -> dict[str, Any]:
    from datetime import datetime

    return {
        "schema": SCHEMA,
        "suite": revision(),
        "producers": producers(),
        "commit": commit(),
        "env": environment(),
        "expectations": expectations,
        "argv": [_without_folder(word) for word in argv],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }

"""Which Torch-TensorRT is installed, and what is missing: answered without importing it (that takes seconds)."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

import torch

RTX, STANDARD = "torch-tensorrt-rtx", "torch-tensorrt"
# The newest release of each minor version; a wheel works with torch of the same minor version only.
RELEASES = {"2.11": "2.11.0", "2.12": "2.12.1", "2.13": "2.13.0", "2.14": "2.14.0"}


@dataclass(frozen=True)
class Installed:
    """flavour: `torch-tensorrt-rtx` (complete on PyPI, builds engines without a GPU) or `torch-tensorrt`."""

    flavour: str
    version: str
    tensorrt: str

    @property
    def rtx(self) -> bool:
        return self.flavour == RTX


def minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def version_of(*distributions: str) -> str:
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def installed() -> Installed | None:
    for flavour, libraries in (
        (RTX, ("tensorrt-rtx-cu13-libs", "tensorrt-rtx-cu12-libs", "tensorrt-rtx")),
        (STANDARD, ("tensorrt-cu13-libs", "tensorrt-cu12-libs", "tensorrt")),
    ):
        if version := version_of(flavour):
            return Installed(flavour, version, version_of(*libraries))
    return None


def missing(found: Installed | None, machine: str | None = None) -> str:
    """Why Torch-TensorRT cannot be used here at all, with the mend, in one line; empty when it can."""
    have, machine = minor(torch.__version__), machine or platform.machine()
    if found is None:
        if have not in RELEASES:
            known = ", ".join(RELEASES)
            return (
                f"torch_tensorrt is not installed, and has no release for torch {have}: install torch of {known} first"
            )
        wanted = f"{RTX}=={RELEASES[have]}"
        if machine not in ("x86_64", "AMD64"):
            wheels = f"{RTX} has wheels for x86_64 only and this is {machine}"
            return f"torch_tensorrt is not installed: {wheels}: pip install {wanted} there"
        return f"torch_tensorrt is not installed: pip install {wanted}"
    if torch.version.cuda is None:
        fix = f"pip install torch=={have}.* from PyPI"
        return f"torch {torch.__version__} is a CPU-only build, {found.flavour} needs CUDA's: {fix}"
    if minor(found.version) != have:
        fix = (
            f"pip install {found.flavour}=={RELEASES[have]}"
            if have in RELEASES
            else f"pip install 'torch=={minor(found.version)}.*'"
        )
        needs = f"{found.flavour} {found.version} needs torch {minor(found.version)}"
        return f"{needs}, this is torch {torch.__version__}: {fix}"
    package = "tensorrt_rtx" if found.rtx else "tensorrt"
    if find_spec(package) is None:
        source = (
            "pip install tensorrt_rtx"
            if found.rtx
            else f"add NVIDIA's package index and pip install tensorrt, or use {RTX} from PyPI"
        )
        return f"{found.flavour} {found.version} is installed without the {package} package: {source}"
    return ""

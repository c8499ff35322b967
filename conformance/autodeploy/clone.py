"""`conformance get autodeploy`: the Python files of TensorRT-LLM that the backend needs, and nothing else of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from conformance.backends.autodeploy.loader import VARIABLE, Found, cache_folder, checkout
from conformance.errors import UsageError

ORIGIN = "https://github.com/NVIDIA/TensorRT-LLM.git"
WANTED = (
    "/tensorrt_llm/version.py",
    "/tensorrt_llm/_torch/auto_deploy/",
    "/tensorrt_llm/_torch/compilation/",
    "/tensorrt_llm/_torch/custom_ops/",
    "/tensorrt_llm/_torch/modules/fla/",
    "/tensorrt_llm/_torch/modules/mamba/",
    "/tensorrt_llm/_torch/*.py",
    "/tensorrt_llm/quantization/utils/",
    "/tests/unittest/auto_deploy/singlegpu/transformations/",
)


def get(ref: str = "HEAD", origin: str = ORIGIN, into: Path | None = None) -> Found:
    """A sparse, shallow clone at `ref` (a branch, a tag or a commit), made anew or moved there."""
    folder = into or cache_folder()
    new = not (folder / ".git").is_dir()
    if new and folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty and not a clone: remove it, or set CONFORMANCE_CACHE to another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _fill(folder, ref, origin)
        return checkout(folder)
    except UsageError:
        if new:
            shutil.rmtree(folder)
        raise


def _fill(folder: Path, ref: str, origin: str) -> None:
    if not (folder / ".git").is_dir():
        _git(folder, "init", "--quiet")
    _git(folder, "sparse-checkout", "set", "--no-cone", *WANTED)
    fetch = ("fetch", "--quiet", "--depth", "1", "--filter=blob:none", "--no-tags", origin, ref)
    try:
        # The remote has a name, because a partial clone fetches what is missing from where it came.
        _git(folder, "config", "remote.origin.url", origin)
        _git(folder, "config", "remote.origin.promisor", "true")
        _git(folder, "config", "remote.origin.partialclonefilter", "blob:none")
        _git(folder, *fetch[:-2], "origin", ref)
        _git(folder, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
    except UsageError as error:
        raise UsageError(
            f"cannot get {ref} of {origin}: {error}; without a network, set {VARIABLE} to a checkout"
        ) from None


def _git(folder: Path, *arguments: str) -> None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=900, env=_environment()
        )
    except FileNotFoundError:
        raise UsageError("git is not installed: install it, or copy a checkout by hand") from None
    except subprocess.TimeoutExpired:
        raise UsageError("git took longer than 15 minutes") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["git failed"]
        raise UsageError(next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1]).strip())


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

"""What the C++ compiler made, kept by what it was given: the same source with the same flags is compiled once a machine.

The store stands below everything that decides what is compiled: it is asked when the command line is ready to run, and its key is the
source, the flags, the compiler and the version of torch. So a plugin that changes generated code, flags or settings gets its own
entries. Where a plugin replaces the function that runs the compiler, the store is not used at all.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from conformance import paths, plugins
from conformance.backends.inductor import kernel_header
from conformance.backends.inductor.cpp_compiler import compiler_identity
from conformance.backends.inductor.seam import seam

MOST_BYTES = 2 << 30
TORCH_LIBRARIES = ("torch", "torch_cpu", "torch_python")


@contextmanager
def kernel_store() -> Iterator[None]:
    """Inside, the C++ compiler is asked only for what it has not made before."""
    if not seam.has("run_cpp_compiler") or not _is_torchs_own(seam.run_cpp_compiler):
        yield
        return
    with seam.subscribe(
        run_cpp_compiler=_stored, **({"header_of": kernel_header.named} if seam.has("header_of") else {})
    ):
        yield


def _is_torchs_own(function: Any) -> bool:
    """Or has a plugin put another one in its place?"""
    function = getattr(function, "__wrapped__", function)
    return getattr(function, "__module__", "") == seam.locate("run_cpp_compiler")[0].__name__


def _stored(proceed: Callable[..., Any], command: str, folder: str) -> Any:
    if kernel_header.is_not_needed(command):
        return None
    output, key = _key(command)
    if not key:
        return proceed(command, folder)
    kept = paths.cache_folder("cpp", key[:2]) / key
    with suppress(OSError):  # it is not there, or another process has just pruned it
        os.utime(kept)
        _copy(kept, output)
        return None
    result = _compiled(proceed, command, folder)
    if not plugins.named():
        with suppress(OSError):  # a full disk costs speed only
            handle, temporary = tempfile.mkstemp(dir=kept.parent)
            os.close(handle)
            shutil.copyfile(output, temporary)
            os.replace(temporary, kept)
    return result


def _copy(kept: Path, output: str) -> None:
    """Megabytes of preprocessed text are only read and taken away: a link does."""
    if output.endswith(".i"):
        with suppress(OSError):  # another file system
            os.link(kept, output)
            return
    shutil.copyfile(kept, output)


def _compiled(proceed: Callable[..., Any], command: str, folder: str) -> Any:
    """Compiled with a header whose templates are instantiated, and linked fast. The code of the kernel is the same."""
    faster = _linked_fast(kernel_header.with_ours(command))
    if faster != command:
        try:
            return proceed(faster, folder)
        except Exception:  # what is wrong with a program is said by the command that torch made
            pass
    return proceed(command, folder)


def _linked_fast(command: str) -> str:
    """Linked against libraries that are torch's by their names alone, and by a fast linker where there is one. To read the symbols of
    libtorch_cpu takes GNU ld a third of the time of a small kernel; which of them a kernel uses is settled when it is loaded."""
    if "-shared" not in command or "-fuse-ld" in command:
        return command
    compiler, _, rest = command.partition(" ")
    words = rest.split()
    flags = [f"-fuse-ld={linker}"] if (linker := _fast_linker()) else []
    names = [name for name in TORCH_LIBRARIES if f"-l{name}" in words]
    if names and (folder := _libraries_by_name(compiler)):
        flags += [f"-L{shlex.quote(folder)}", "-Wl,--no-as-needed", *(f"-l{name}" for name in names), "-Wl,--as-needed"]
    return " ".join([compiler, *flags, rest])


@cache
def _fast_linker() -> str:
    return next((name for name in ("mold", "lld", "gold") if shutil.which(f"ld.{name}")), "")


@cache
def _libraries_by_name(compiler: str) -> str:
    """A folder of libraries that have the names of torch's and hold nothing; "" where they cannot be made."""
    folder = paths.cache_folder("names")
    for name in TORCH_LIBRARIES:
        kept = folder / f"lib{name}.so"
        if not kept.exists():
            made = folder / f"{name}-{os.getpid()}.so"
            command = [compiler, "-shared", "-x", "c++", os.devnull, f"-Wl,-soname,{kept.name}", "-o", str(made)]
            try:
                subprocess.run(command, check=True, capture_output=True)
                os.replace(made, kept)
            except (OSError, subprocess.CalledProcessError):
                return ""
    return str(folder)


def _key(command: str) -> tuple[str, str]:
    """The file that the command makes, and a digest of all that it depends on; "" where that cannot be told."""
    words = shlex.split(command)
    if "-o" not in words[:-1]:
        return "", ""
    output = words[words.index("-o") + 1]
    sources = [word for word in words[1:] if word.endswith((".cpp", ".hpp")) and os.path.isfile(word)]
    if len(sources) != 1 or output in sources:
        return "", ""
    hashed = hashlib.sha256(
        f"{kernel_header.torch_headers()}\0{compiler_identity(shutil.which(words[0]) or words[0])}\0".encode()
    )
    for word in words:
        hashed.update(("source" if word in sources else "output" if word == output else word).encode() + b"\0")
    hashed.update(Path(sources[0]).read_bytes())
    return output, hashed.hexdigest()


def prune() -> None:
    """Forget what was not asked for the longest, where the store has become too large. Another process may do the same."""
    files = []
    for file in paths.cache_folder("cpp").glob("*/*"):
        with suppress(OSError):
            found = file.stat()
            files.append((found.st_mtime, found.st_size, file))
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= MOST_BYTES:
            return
        total -= size
        file.unlink(missing_ok=True)

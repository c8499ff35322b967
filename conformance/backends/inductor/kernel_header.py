"""The header that every kernel for the CPU includes, compiled once with its templates instantiated.

torch has the header compiled once a machine. But GCC keeps a compiled header as it was parsed: the templates that its functions use are
instantiated at the end of every file that includes it, again for each kernel, two thirds of the time of a small one. Here the header is
compiled with a plugin for GCC that instantiates them before the header is kept. The instructions of the kernels are the same
(`tests/engine/test_kernel_header.py`).

Which header belongs to which flags torch finds out in every process, by a preprocessor and a program that hashes its output: that is kept, too.

torch's own compiled header, which other programs of this user share, is left alone. Where the compiler is not GCC, takes no plugins
or refuses a kernel, kernels are compiled with torch's header by the command that torch made.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from conformance import paths, plugins
from conformance.backends.inductor.cpp_compiler import compiler_identity

PLUGIN = Path(__file__).with_name("instantiate_templates.c")
PRAGMA = "#pragma conformance_instantiate\n"
NOT_THE_HEADERS = ("-shared", "-c", "-S")  # what a command says of the file that it makes
NOT_THE_HEADERS_WITH_VALUE = ("-include", "-o", "-x")
LINKING = ("-l", "-L", "-Wl,", "-fuse-ld=")


@dataclass(frozen=True)
class Command:
    """A command that compiles a kernel with a compiled header, or such a header itself."""

    words: tuple[str, ...]
    header: Path  # torch's
    makes_header: bool

    def flags(self) -> list[str]:
        """Those that decide what the header means; the header's own command and those of its kernels have the same."""
        flags: list[str] = []
        words = iter(self.words[1:])
        for word in words:
            if word in NOT_THE_HEADERS_WITH_VALUE:
                next(words, "")
            elif word not in NOT_THE_HEADERS and not word.startswith(LINKING) and not word.endswith((".cpp", ".h")):
                flags.append(word)
        return flags


def parsed(command: str) -> Command | None:
    """None for a command that has no such header."""
    words = tuple(shlex.split(command))
    before = "-x" if "c++-header" in words else "-include"
    if before not in words:
        return None
    place = words.index(before) + (2 if before == "-x" else 1)
    if place >= len(words) or not words[place].endswith(".h") or not os.path.isfile(words[place]):
        return None
    return Command(words, Path(words[place]), before == "-x")


def is_not_needed(command: str) -> bool:
    """Does the command make a header that no kernel will be compiled with, since there is one of ours?"""
    asked = parsed(command)
    return asked is not None and asked.makes_header and _header(asked) is not None


def with_ours(command: str) -> str:
    """The command with our header in place of torch's; the same command where there is none."""
    asked = parsed(command)
    if asked is None or asked.makes_header or (ours := _header(asked)) is None:
        return command
    words = [str(ours) if word == str(asked.header) else word for word in asked.words]
    return shlex.join(words)


def named(proceed: Callable[..., str], *args: Any, **kwargs: Any) -> str:
    """In place of torch's function that gives the header for some flags: what it gave before."""
    if plugins.named():
        return proceed(*args, **kwargs)
    asked = re.sub(
        " at 0x[0-9a-f]+", "", repr((args, sorted(kwargs.items())))
    )  # the flags as a command line are one of them
    digest = hashlib.sha256(
        f"{_identity(os.environ.get('CXX', 'g++'))}\0{torch_headers()}\0{asked}".encode()
    ).hexdigest()
    kept = paths.cache_folder("header") / f"named-{digest[:16]}"
    with suppress(OSError):
        header = kept.read_text("utf-8")
        if os.path.isfile(header):
            return header
    header = proceed(*args, **kwargs)
    with suppress(OSError):  # a full disk costs speed only
        made = kept.with_name(f"{kept.name}-{os.getpid()}")
        made.write_text(header, "utf-8")
        os.replace(made, kept)
    return header


@cache
def torch_headers() -> str:
    """The headers of kernels in the installed torch: some who work on torch edit them, and the version stays."""
    folder = Path(torch.__file__).parent / "include" / "torch" / "csrc" / "inductor"
    files = sorted(folder.glob("*.h")) if folder.is_dir() else []
    return "\n".join([torch.__version__, *(f"{file} {file.stat().st_mtime_ns}" for file in files)])


def kept_at(command: str) -> Path | None:
    """Where the compiled header of a kernel's command is: ours or torch's."""
    asked = parsed(command)
    if asked is None:
        return None
    return _compiled(_header(asked) or asked.header)


def _compiled(header: Path) -> Path:
    return header.with_name(header.name + ".gch")


def _header(asked: Command) -> Path | None:
    """Ours in place of torch's header, which is made where it is missing; None where it cannot be made."""
    compiler = asked.words[0]
    if _plugin(compiler) is None:
        return None
    hashed = hashlib.sha256(f"{_identity(compiler)}\0{torch_headers()}\0{asked.header}\0{PLUGIN.read_text()}".encode())
    hashed.update("\0".join(asked.flags()).encode())
    folder = paths.cache_folder("header", hashed.hexdigest()[:16])
    header = folder / "kernel.h"
    if _compiled(header).exists():
        return header
    if plugins.named():  # nothing is kept that was made beside somebody's plugin
        return None
    with _alone(folder):
        if not _compiled(header).exists() and not (folder / "refused").exists():
            _make(asked, header)
    return header if _compiled(header).exists() else None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time; the others wait, as they do for torch's header."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(asked: Command, header: Path) -> None:
    compiler = asked.words[0]
    made = header.with_name("made.gch")
    command = [
        compiler,
        f"-fplugin={_plugin(compiler)}",
        *asked.flags(),
        "-x",
        "c++-header",
        str(header),
        "-o",
        str(made),
    ]
    try:
        header.write_text(asked.header.read_text("utf-8") + PRAGMA, "utf-8")
        subprocess.run(command, check=True, capture_output=True)
        os.replace(made, _compiled(header))
    except subprocess.CalledProcessError:
        header.with_name("refused").touch()
    except OSError:  # a full disk costs speed only
        made.unlink(missing_ok=True)


@cache
def _identity(compiler: str) -> str:
    return compiler_identity(shutil.which(compiler) or compiler)


@cache
def _plugin(compiler: str) -> Path | None:
    """The plugin, made once for each compiler; None for a compiler that cannot have it."""
    identity = _identity(compiler)
    if "Free Software Foundation" not in identity:  # clang, for one
        return None
    digest = hashlib.sha256(f"{identity}\0{PLUGIN.read_text()}".encode()).hexdigest()[:16]
    kept = paths.cache_folder("header") / f"plugin-{digest}.so"
    if not kept.exists():
        made = kept.with_name(f"{digest}-{os.getpid()}.so")
        command = [compiler, "-x", "c", "-shared", "-fPIC", "-O1", str(PLUGIN), "-o", str(made)]
        try:
            subprocess.run(command, check=True, capture_output=True)
            os.replace(made, kept)
        except (OSError, subprocess.CalledProcessError):
            return None
    return kept

"""What this machine's C++ compiler can do is found out once a machine, torch and C++ compiler, while other things are imported.

Inductor builds a small library for each vector instruction set and loads it in a new interpreter that imports torch: seconds in
every process that compiles for the CPU. Where each set that the CPU has passed, TORCHINDUCTOR_VEC_ISA_OK=1 says the same
without asking, and the answer is kept. Where one did not pass, it is asked each time, as without us. The header that every kernel
includes is compiled once a machine (`kernel_header.py`): here that is begun before the first kernel waits for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import torch

from conformance import paths, plugins
from conformance.backends.inductor import kernel_header
from conformance.backends.inductor.cpp_compiler import compiler_identity
from conformance.backends.inductor.kernel_store import kernel_store
from conformance.backends.inductor.seam import seam
from conformance.processes import Job, Pool, die_with_parent, fork

VARIABLE = "TORCHINDUCTOR_VEC_ISA_OK"
LIMIT = 120.0  # seconds for one instruction set


def ask_for_vector_instructions() -> Callable[[], None]:
    """Begin to find out, where no answer is kept. What is returned waits for the answer and keeps it; processes and interpreters that are
    started afterwards have it, too."""
    if VARIABLE in os.environ or not _compiler() or not (seam.has("pick_vec_isa") and seam.has("valid_vec_isas")):
        return lambda: None
    kept = _kept("vector")
    if kept.exists():
        return _all_passed
    answer, tell = os.pipe()
    if (pid := fork()) == 0:
        os.close(answer)
        _tell_whether_all_pass(tell)
    os.close(tell)

    def know() -> None:
        passed = os.read(answer, 1) == b"1"
        os.close(answer)
        os.waitpid(pid, 0)
        if passed:
            if not plugins.named():  # a patched compiler's answer is not kept
                with suppress(OSError):  # a full disk costs speed only
                    kept.touch(mode=0o600)
            _all_passed()

    return know


def _all_passed() -> None:
    os.environ[VARIABLE] = "1"
    seam.config.cpp.vec_isa_ok = True


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "g++"))


def _kept(what: str) -> Path:
    asked = f"{torch.__version__}\0{torch.__file__}\0{compiler_identity(_compiler() or '')}"
    return paths.cache_folder("probe") / f"{what}-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"


def _tell_whether_all_pass(tell: int) -> NoReturn:
    """In a process of its own."""
    try:
        die_with_parent()
        with suppress(Exception):
            os.write(tell, b"1" if _all_pass() else b"0")
    finally:
        os._exit(0)


def _all_pass() -> bool:
    """Does the C++ compiler make working code for every instruction set that the CPU has? Each is tried in a process of its own."""
    with seam.config.patch({"cpp.vec_isa_ok": True}):
        sets = getattr(seam.valid_vec_isas, "__wrapped__", seam.valid_vec_isas)()
    jobs = [Job(str(one), _try, (one,)) for one in sets]
    passed = {event.job.key for event in Pool(len(jobs), LIMIT).run(jobs) if event.said}
    return bool(jobs) and passed == {job.key for job in jobs}


def _try(instructions: Any, say: Callable[[Any], None]) -> None:
    say(bool(instructions))


def begin_header() -> None:
    """Have the header of kernels compiled, in a process that nobody waits for: a kernel that comes sooner waits for its lock. Its flags
    name the instruction sets: it is begun as if all of them passed, beside the programs that ask.
    Not with somebody's plugins: what they do once would be done to this program, and not to the first that is examined."""
    if plugins.named() or not _compiler() or not seam.has("run_cpp_compiler"):
        return
    kept = _kept("header")
    with suppress(OSError):
        if Path(kept.read_text("utf-8")).exists():
            return
    if fork() == 0:
        try:
            die_with_parent()
            with suppress(BaseException):
                _all_passed()
                _first_kernel(kept)
        finally:
            os._exit(0)


def _first_kernel(kept: Path) -> None:
    """The smallest program; keep where its header is."""

    def noted(proceed: Callable[..., Any], command: str, folder: str) -> Any:
        result = proceed(command, folder)
        if (header := kernel_header.kept_at(command)) is not None:
            kept.write_text(str(header), "utf-8")
        return result

    # The newest subscriber is asked first: it sees the command as torch made it.
    with kernel_store(), seam.subscribe(run_cpp_compiler=noted), seam.config.patch({"force_disable_caches": True}):
        torch.compile(torch.neg)(torch.ones(3))


def know_cpp_compiler() -> None:
    """Ask the C++ compiler who it is. torch does so once a process, with five programs started; those forked from here have it."""
    if not (seam.has("pick_vec_isa") and seam.has("cpp_options")):
        return
    with suppress(Exception):  # the first compile says what is wrong with it
        seam.cpp_options(vec_isa=seam.pick_vec_isa(), device_type="cpu")

"""Which vector instructions this machine has is found out once a machine, torch and C++ compiler.

Inductor builds a small library for each instruction set and loads it in a new interpreter that imports torch: seconds in
every process that compiles for the CPU. Where each set that the CPU has passed, TORCHINDUCTOR_VEC_ISA_OK=1 says the same
without asking, and the answer is kept. Where one did not pass, it is asked each time, as without us.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress

import torch

from conformance import paths, plugins
from conformance.backends.inductor.kernel_store import compiler_identity
from conformance.backends.inductor.seam import seam

VARIABLE = "TORCHINDUCTOR_VEC_ISA_OK"


def know_vector_instructions() -> None:
    """Take the kept answer, or find it out and keep it. Processes and interpreters started from here have it, too."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if VARIABLE in os.environ or compiler is None or not (seam.has("pick_vec_isa") and seam.has("valid_vec_isas")):
        return
    kept = paths.cache_folder("probe") / f"vector-{_key(compiler)}"
    if not kept.exists():
        if not _all_passed():
            return
        if not plugins.named():  # a patched compiler's answer is not kept
            with suppress(OSError):  # a full disk costs speed only
                kept.touch(mode=0o600)
    os.environ[VARIABLE] = "1"
    seam.config.cpp.vec_isa_ok = True


def _key(compiler: str) -> str:
    asked = f"{torch.__version__}\0{torch.__file__}\0{compiler_identity(compiler)}"
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def _all_passed() -> bool:
    """Does the C++ compiler make working code for every instruction set that the CPU has?"""
    bool(seam.pick_vec_isa())
    found = [str(one) for one in seam.valid_vec_isas()]
    with seam.config.patch({"cpp.vec_isa_ok": True}):
        asked = getattr(seam.valid_vec_isas, "__wrapped__", seam.valid_vec_isas)
        return bool(found) and [str(one) for one in asked()] == found


def know_cpp_compiler() -> None:
    """Ask the C++ compiler who it is. torch does so once a process, with five programs started; those forked from here have it."""
    if not (seam.has("pick_vec_isa") and seam.has("cpp_options")):
        return
    with suppress(Exception):  # the first compile says what is wrong with it
        seam.cpp_options(vec_isa=seam.pick_vec_isa(), device_type="cpu")

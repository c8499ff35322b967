"""The Inductor backend: what it makes code for, with which settings, and what is made ready before processes are forked."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from shutil import which
from threading import Thread
from typing import Any

import torch

from conformance import headless, scenario
from conformance.backends.base import Backend, Case, Compiled, all_unavailable
from conformance.backends.inductor.cpp_toolchain import ask_for_vector_instructions, begin_header, know_cpp_compiler
from conformance.backends.inductor.kernel_store import prune
from conformance.backends.inductor.seam import FIRST_COMPILE, FIRST_QUOTED, FIRST_TABLES, seam, streams
from conformance.inputs import Tensor
from conformance.seam import Seam, located
from conformance.stage import Stage
from conformance.target import DEVICES, Target

CONFIGS = {
    "inductor": "config",
    "dynamo": "dynamo_config",
    "functorch": "functorch_config",
}  # a setting's first word → the seam's key


# The targets for which this process, or the one that it was forked from, has imported what a compile needs.
_PREPARED: set[str] = set()


class InductorBackend(Backend):
    name = "inductor"
    package = "torch"

    def versions(self) -> dict[str, str]:
        found = {"torch": str(torch.__version__)}
        try:
            import triton

            found["triton"] = triton.__version__
        except ImportError:
            pass
        return found

    def targets(self) -> tuple[str, ...]:
        return ("cpu", "cuda", *DEVICES)

    def seams(self) -> tuple[Seam, ...]:
        return (seam, streams, *headless.tables())

    def unavailable(self, target: Target) -> dict[Stage, str]:
        if target.name == "cuda" and not torch.cuda.is_available():
            return all_unavailable("needs a CUDA device; use a headless target such as sm_90 here")
        if target.name == "cpu" and not _has_cpp_compiler():
            return all_unavailable("needs a C++ compiler: install g++ (Debian: apt-get install g++)")
        reasons = headless.unavailable(target) if target.headless else {}
        if target.name == "cuda":
            reasons |= streams.unavailable()
        for table in reversed(self.seams()):
            if table not in (streams, *headless.tables()):  # these are asked for their own targets alone
                reasons |= table.unavailable()
        return reasons

    def compile(self, case: Case) -> Compiled:
        if case.target.headless:
            from conformance.backends.inductor.headless import HeadlessCompiled

            return HeadlessCompiled(self, case)
        from conformance.backends.inductor.compiled import InductorCompiled

        return InductorCompiled(self, case)

    def eager(self, case: Case, module: Any) -> Callable[..., Any]:
        if case.target.headless:
            from conformance.backends.inductor.headless import described_program, runs_in_eager

            if runs_in_eager(case.micrograph, case.target):
                return described_program(case, module, compiled=False)
        return module

    def program(self, case: Case, module: Any) -> Callable[..., Any]:
        """The compiled module, called with the tensors of `case.inputs()`."""
        if case.target.headless:
            from conformance.backends.inductor.headless import described_program

            return described_program(case, module)
        return self.compile_entry(module, **case.micrograph.options)

    def preload(self, target: Target) -> None:
        """What the first compile of a process would import and compute, none of which depends on what is compiled."""
        import importlib
        import logging

        if target.name in _PREPARED:  # by the process that this one was forked from
            return
        _PREPARED.add(target.name)
        know_vector_instructions = ask_for_vector_instructions() if target.name == "cpu" else None
        # It warns of a CUDA toolkit without a GPU when it is imported; here that is no news.
        logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
        with _keys_worked_out():
            for name in FIRST_COMPILE:
                try:
                    importlib.import_module(name)
                except ImportError:  # another version: the first compile will find what it needs
                    continue
            _make_tables()
        if know_vector_instructions is not None:
            begin_header()
            know_vector_instructions()
            know_cpp_compiler()
            prune()
            # Registering those of a GPU makes a CUDA context, and no process could be forked then.
            _register_patterns(torch.device("cpu"))

    def trail(self, case: Case, held: Any) -> Any:
        """A variant runs its program in another way: its graphs do not show that."""
        from conformance.backends.inductor.triage.trail import InductorTrail

        return None if self.variant_of else InductorTrail(self, case, held)

    def repro_entry(self, stage: str) -> tuple[str, str] | None:
        return "torch.compile", ""

    def triage_adapter(self) -> Any:
        from conformance.backends.inductor.triage.ladder import InductorAdapter

        return InductorAdapter()

    # ------------------------------------------------------- what every process that compiles the same case agrees on

    def compile_entry(self, module: Any, **options: Any) -> Callable[..., Any]:
        return torch.compile(module, **options)

    def compile_function(self, case: Case) -> Callable[..., Any]:
        """What a scenario compiles other functions with, and its options."""
        if case.target.headless:
            return scenario.only_modules(f"{self.name} for {case.target}")
        return torch.compile

    @contextmanager
    def settings(self, case: Case) -> Iterator[None]:
        with ExitStack() as stack:
            for name, value in case.micrograph.settings.items():
                part, _, setting = name.partition(".")
                stack.enter_context(getattr(seam, CONFIGS[part]).patch(**{setting: value}))
            if case.micrograph.contract.runtime.random:
                # The only way to draw the same numbers as eager: let eager's own ops draw them.
                stack.enter_context(seam.config.patch(fallback_random=True))
            if case.target.name != "cpu":
                # Whether a matmul is padded is decided by a stopwatch: the same program would not be made twice.
                stack.enter_context(seam.config.patch(shape_padding=False))
            for key, instead in FOR_LOGS.items():
                if seam.has(key):
                    stack.enter_context(seam.subscribe(**{key: instead}))
            yield

    def settings_in_force(self) -> dict[str, str]:
        configs = {part: getattr(seam, key) for part, key in CONFIGS.items() if seam.has(key)}
        found = {
            f"{part}.{setting}": repr(value)
            for part, config in configs.items()
            for setting, value in config.get_config_copy().items()
        }
        # torch 2.14 sets it for the rest of a process once emulate_precision_casts was on, and saved graphs are valid for one libdevice only.
        return found | {"TRITON_LIBDEVICE_PATH": os.environ.get("TRITON_LIBDEVICE_PATH", "")}

    def settings_changed(self) -> dict[str, str]:
        return {
            "torch._inductor.config.fallback_random = True": "micrographs that draw random numbers: eager's own ops draw them, "
            "so that the numbers can be compared. The default is probed as well",
            "torch._inductor.config.shape_padding = False": "GPU targets: whether a matmul is padded is decided by a stopwatch, "
            "so that the same program would not be made twice",
            seam.shown("time_guards"): "not called: Dynamo times new guards after it has flushed the processor's "
            "caches, a quarter of what a capture costs, and only logs the result",
            seam.shown(
                "function_of_line"
            ): "not called: Dynamo splits each source file into its words, in every process, to log a line",
            seam.shown(
                "key_in_words"
            ): "not called where a probe only asks whether a cache misses: Inductor works each key "
            "out twice, for its log",
            "TORCHINDUCTOR_CACHE_DIR": "a new folder for every compile: each starts from empty caches",
            "TORCHINDUCTOR_VEC_ISA_OK=1": "where every vector instruction set of this CPU was tried and works: Inductor would "
            "try them in every process",
            "torch.set_num_threads": "the same number in every process (`--threads`): generated code depends on it",
        }

    def marked(self, case: Case, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        capture = case.micrograph.contract.capture
        if capture.dynamic or capture.unbacked:
            for spec, value in zip(case.micrograph.inputs, inputs, strict=True):
                if isinstance(spec, Tensor):
                    _mark(value, spec.names(), {*capture.dynamic}, {*capture.unbacked})
        return inputs


def _make_tables() -> None:
    """What is the same for every program, and what every process would otherwise work out again."""
    # Our own half of a compile, too: it is imported where a case begins, since it needs the compiler.
    from conformance.backends.inductor import compiled  # noqa: F401

    for path in FIRST_TABLES:
        with suppress(Exception):  # another version: the first compile makes what it needs
            owner, name = located(path)
            getattr(owner, name)()
    for name in FIRST_QUOTED:
        with suppress(KeyError):
            linecache.getlines(str(sys.modules[name].__file__))


@contextmanager
def _keys_worked_out() -> Iterator[None]:
    """Digests of the sources of triton and torch, which every key holds, worked out beside what is done inside. With a GPU the first asks
    CUDA for the GPU's name, and no process could be forked then."""
    keys = ("torch_key",) if torch.cuda.is_available() else ("system_key", "torch_key")
    working = [Thread(target=getattr(seam, key)) for key in keys if seam.has(key)]
    for thread in working:
        thread.start()
    try:
        yield
    finally:
        for thread in working:  # none may be left when a process is forked
            thread.join()


def _register_patterns(device: torch.device) -> None:
    """The patterns of the graph passes, registered with the arguments with which a compile registers them: it would otherwise do so
    a second time."""
    if seam.has("joint_patterns"):
        seam.joint_patterns(device)
    if seam.has("post_grad_patterns"):
        seam.post_grad_patterns()


def _mark(value: torch.Tensor, names: tuple[str, ...], dynamic: set[str], unbacked: set[str]) -> None:
    for index, name in enumerate(names):
        used = set(re.findall(r"[a-z]\w*", name))
        if used & unbacked:
            seam.mark_unbacked(value, index)
        elif used & dynamic and value.shape[index] > 1:
            seam.mark_dynamic(value, index)


def _has_cpp_compiler() -> bool:
    return any(which(name) for name in (os.environ.get("CXX") or "g++", "g++", "clang++", "c++"))


def _not_timed(proceed: Callable[..., float], *_: Any) -> float:
    return 0.0


def _not_named(proceed: Callable[..., str | None], *_: Any) -> None:
    return None


# What torch works out for its logs alone, and a compile is waiting for.
FOR_LOGS: dict[str, Callable[..., Any]] = {"time_guards": _not_timed, "function_of_line": _not_named}

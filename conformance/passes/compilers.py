"""The compilers that a pass can be put into: what the object is says which."""

from __future__ import annotations

import ast
import contextlib
import importlib
from pathlib import Path
from typing import Any, Protocol

import torch

from conformance.backends.inductor.seam import FIRST_COMPILE
from conformance.backends.inductor.seam import seam as inductor
from conformance.errors import UsageError, unknown
from conformance.micrograph import Micrograph
from conformance.passes.examination import Depth, Examination, examine
from conformance.passes.subject import Subject, load
from conformance.target import Target

BACKENDS = ("inductor", "autodeploy", "torch_tensorrt")
NOT_BUILT = "the program that ran is the graph after all passes; no code was built (--build builds it)"
# Options that only Inductor's passes have, with what to do instead.
INDUCTOR_ONLY = {
    "hook": "a transform's stage is in its config; a lowering pass runs after Torch-TensorRT's own",
    "build": "leave it out",
    "pin": "the fixture compiles with Inductor; keep what --json writes and compare with --against",
}


class Compiler(Protocol):
    """Something that puts a pass into a compile."""

    name: str  # of the pass
    target: str
    micrographs: str  # globs that the pass's author has named
    place: str  # where the pass runs, for people
    ran: str  # what it is that ran, for people

    def version(self) -> str: ...

    def prepare(self) -> None:
        """What every examination needs, done once before processes are forked."""

    def examine(self, cls: type[Micrograph]) -> Examination: ...


class Inductor:
    """A custom pass of Inductor's."""

    def __init__(self, subject: Subject, target: str, depth: Depth) -> None:
        self.subject, self.target, self.depth = subject, target, depth
        self.name, self.micrographs = subject.name, subject.micrographs
        self.place = f"torch._inductor.config.{subject.hook.setting}"
        self.ran = "" if depth.build else NOT_BUILT

    def version(self) -> str:
        return str(torch.__version__)

    def prepare(self) -> None:
        if self.depth.build:
            from conformance import backends

            backends.get("inductor").preload(Target.parse(self.target))
        else:
            preload()

    def examine(self, cls: type[Micrograph]) -> Examination:
        return examine(self.subject, cls, Target.parse(self.target), self.depth)


def depth_of(options: dict[str, Any]) -> Depth:
    deep = not options["quick"]
    return Depth(deep, deep, deep, options["build"], options["limit"])


def compiler_of(address: str, options: dict[str, Any]) -> Compiler:
    """The compiler that a pass is for, and the pass ready to be put into it."""
    backend = options["backend"] or _guess(address)
    if backend not in BACKENDS:
        raise unknown("compiler of passes", backend, BACKENDS)
    torch.set_num_threads(1)  # a process with threads cannot be forked
    if backend != "inductor":
        for option in (each for each in INDUCTOR_ONLY if options[each]):
            raise UsageError(
                f"--{option} is for Inductor's passes, and this one is for {backend}: {INDUCTOR_ONLY[option]}"
            )
    if backend == "autodeploy":
        from conformance.passes.autodeploy import AutoDeploy

        if options["target"] != "cpu":
            raise UsageError(f"--target {options['target']}: AutoDeploy's transforms are examined for cpu alone")
        return AutoDeploy(address, options["kernels"], not options["quick"], options["limit"])
    if backend == "torch_tensorrt":
        from conformance.passes.torch_tensorrt import TorchTensorRT

        return TorchTensorRT(address, options["target"], options["limit"])
    from conformance import backends

    target = Target.parse(options["target"])
    reasons = backends.get("inductor").unavailable(target)
    if target.headless and reasons:
        raise UsageError(f"{target}: {next(iter(reasons.values()))}")
    return Inductor(load(address, options["hook"]), options["target"], depth_of(options))


def preload() -> None:
    """What every compile imports, once for all processes that are forked; what only building code needs is left out."""
    for name in FIRST_COMPILE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if inductor.has("joint_patterns"):
        inductor.joint_patterns(torch.device("cpu"))
    if inductor.has("post_grad_patterns"):
        inductor.post_grad_patterns()


def _guess(address: str) -> str:
    """A variable `backend` of the file, read without importing it: an AutoDeploy transform imports only inside AutoDeploy."""
    file = Path(address.rpartition(":")[0])
    if not file.is_file():
        raise UsageError(f"no file {file}: write FILE.py:OBJECT")
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except SyntaxError as error:
        raise UsageError(f"{file} does not parse: {error.msg}, line {error.lineno}") from None
    for node in tree.body:
        named = isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "backend" for t in node.targets)
        if named and isinstance(node.value, ast.Constant):  # type: ignore[attr-defined]
            return str(node.value.value)  # type: ignore[attr-defined]
    return "inductor"

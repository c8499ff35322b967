"""Triage of a script: the process that all runs are forked from is made ready, and the search started."""

from __future__ import annotations

import ast
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conformance import paths, plugins, repro
from conformance.errors import UsageError
from conformance.triage.answer import Answer
from conformance.triage.ending import Ending
from conformance.triage.runs import FORKS, NO_POOL, Runs, plain_ending, probe_folder
from conformance.triage.script_search import Search
from conformance.triage.subject import Script, of_object, script

COMPILERS = {"torch_tensorrt": "torch_tensorrt", "tensorrt_llm": "autodeploy"}  # by the package that a script imports
RUN_LIMIT = 120.0  # seconds that one run of the script may take
ALONE = 3  # times as long in an interpreter of its own: a large right program must not look as if it did not end there


def triage_script(
    subject: Script,
    *,
    backend: str = "",
    out: Path | None = None,
    shrink: bool = True,
    limit: float | None = None,
    run_limit: float = RUN_LIMIT,
    within: float = math.inf,
    workers: int = 2,
    say: Callable[[str], None] = lambda text: None,
) -> Answer:
    """Stage, culprit and repro of a script."""
    os.environ |= {**NO_POOL, **FORKS, **os.environ, **early_environment(subject.text)}
    adapter, versions = made_ready(backend or compiler_of(subject.text))

    def plain() -> Ending:
        with tempfile.TemporaryDirectory(prefix="conformance-plain-") as folder:
            path = subject.path
            if prelude := adapter.prelude():
                path = Path(folder, subject.path.name)
                path.write_text(repro.after(prelude, subject.text), encoding="utf-8")
            elsewhere = path != subject.shown.resolve()
            env = {"TMPDIR": folder} | (subject.imports_beside() if elsewhere else {})
            return plain_ending(path, subject.arguments, env, Path(folder), ALONE * run_limit)

    runs = Runs(adapter.hold, limit=run_limit, workers=workers)
    runs.prepare()
    try:
        search = Search(subject, adapter, runs, versions, plain=plain, limit=limit, within=within, say=say)
        return search.run(out or paths.state("triage"), shrink)
    finally:
        runs.close()


def checked(file: Path, arguments: tuple[str, ...] = (), name: str = "", folder: Path | None = None) -> Script:
    """The script that a user named; for an object of the file, the script that holds it against eager, in the
    folder."""
    if not file.is_file():
        raise UsageError(f"no file {file}")
    try:
        ast.parse(file.read_text(encoding="utf-8"))
        found = of_object(file, name, folder) if folder is not None else script(file, arguments)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{file} is no Python: {error}") from None
    return found


def made_ready(name: str) -> tuple[Any, dict[str, str]]:
    """Import the compiler and all that a first compile needs; compile nothing."""
    with _cache_folder(probe_folder()), _quiet():
        import torch

        from conformance import backends
        from conformance.backends.base import Triaged

        plugins.load_plugins()
        backend = backends.get(name)
        if not isinstance(backend, Triaged):
            raise UsageError(
                f"a script cannot be stopped at the stages of {name}; name a module with FILE.py:OBJECT -b {name}, or take "
                "-b inductor, which stops every torch.compile"
            )
        with torch.compiler.set_stance("force_eager"):  # it imports Dynamo
            pass
        adapter = backend.triage_adapter()
        adapter.prepare()
        return adapter, backend.versions() or {"torch": str(torch.__version__)}


def compiler_of(text: str) -> str:
    """The compiler that a script uses: Torch-TensorRT or AutoDeploy where it imports them, else Inductor."""
    imported = {
        name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in [getattr(node, "module", "") or "", *(alias.name for alias in node.names)]
    }
    packages = {name.split(".")[0] for name in imported}
    return next((compiler for package, compiler in COMPILERS.items() if package in packages), "inductor")


def early_environment(text: str) -> dict[str, str]:
    """What a script puts into the environment at its top level: torch reads some of it when it is imported, which the
    processes that are forked here have done before the script begins."""
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("os.environ["):
            pair: list[ast.expr] = [node.targets[0].slice, node.value]  # type: ignore[attr-defined]
        elif call is not None and ast.unparse(call.func) == "os.environ.setdefault":
            pair = call.args
        else:
            continue
        if len(pair) == 2 and all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in pair):
            name, value = (one.value for one in pair)  # type: ignore[attr-defined]
            if call is None or name not in os.environ:
                found[name] = value
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """What torch says of this machine when it is imported is not for the user."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _cache_folder(folder: Path) -> Iterator[None]:
    before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TORCHINDUCTOR_CACHE_DIR"]
        else:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = before

"""A process that has compiled nothing: it is handed artifacts, and says whether they were used.

One such process serves a whole run: importing the compiler is most of what a fresh process costs. Between two requests
its graph caches are empty again, so that every answer is that of a process which only ever loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIMIT = 300.0  # seconds to wait for one answer; a busy machine takes a minute to import the compiler


class Hotload:
    """The parent's end."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.early = True

    def soon(self) -> None:
        """It will be asked: let it import the compiler while this process compiles."""
        if self.early:
            self.start()

    @contextmanager
    def only_when_asked(self) -> Iterator[None]:
        """Where most compiles never come to the cache stage, the process costs more than it gives: do not start it ahead."""
        before, self.early = self.early, False
        try:
            yield
        finally:
            self.early = before

    def start(self) -> None:
        """Starts the process without waiting for it."""
        if self.process is None or self.process.poll() is not None:
            root = str(Path(__file__).resolve().parents[3])
            path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
            self.process = subprocess.Popen(
                [sys.executable, "-m", "conformance.backends.inductor.hotload"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "PYTHONPATH": path},
            )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.start()
        assert self.process and self.process.stdin and self.process.stdout
        start = time.monotonic()
        timer = threading.Timer(LIMIT, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            code = self.process.wait()
            self.process = None
            if code < 0 and time.monotonic() - start >= LIMIT:
                return {"timeout": f"the fresh process gave no answer in {LIMIT:.0f} s"}
            return {"error": f"the fresh process ended with code {code}"}
        return json.loads(line)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


HOTLOAD = Hotload()


# ------------------------------------------------------------------------------------ the fresh process


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what compilers print must not end up between the answers
    from conformance.plugins import load_plugins

    load_plugins()
    import torch._inductor.compile_fx  # noqa: F401  (the import is most of the cost; do it while nobody waits)

    for line in sys.stdin:
        try:
            answer = _load_and_run(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _load_and_run(request: dict[str, Any]) -> dict[str, Any]:
    import torch

    from conformance import backends, oracle
    from conformance.backends.base import Case
    from conformance.backends.inductor.caches import counted
    from conformance.micrograph import load
    from conformance.target import Target

    micrograph = load(request["file"])[request["name"]]
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = request["cache"]
    case = Case(micrograph, Target.parse(request["target"]))
    backend: Any = backends.get(request["backend"])
    with backend.settings(case):
        torch._dynamo.reset()
        torch._inductor.codecache.PyCodeCache.cache_clear()
        info = torch.compiler.load_cache_artifacts(Path(request["artifacts"]).read_bytes())
        module = case.module()
        with counted() as seen:
            fn = backend.program(case, module)
            outcome = oracle.run(lambda *inputs: fn(*backend.marked(case, inputs)), case.inputs(0), module, calls=micrograph.steps)
    if outcome.error is not None:
        return {"error": f"{type(outcome.error).__name__}: {str(outcome.error)[:200]}", "counts": seen}
    tensors = {"outputs": outcome.outputs, "inputs": outcome.inputs, "state": outcome.state}
    torch.save(tensors, request["answer"])
    return {"counts": seen, "loaded": info is not None}


if __name__ == "__main__":
    serve()

"""Put on the path of interpreters that a triaged program starts. Its work is done by a process that has imported
torch already, where such a process will do it; else it goes on here, and its compiles are held as soon as it has
imported torch."""

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

# Interpreters that start interpreters, so many deep, and no more: a script that starts itself may have lost, while it was
# made smaller, the line that keeps the second from doing the same.
_DEEPEST = 5
# How multiprocessing starts its children, which get their work through pipes.
_MULTIPROCESSING = ("from multiprocessing.spawn import", "from multiprocessing.forkserver import")


def _handed_over() -> None:
    """Hand this interpreter's work over; returns only if nobody takes it."""
    import json
    import signal
    import socket

    inherited = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    numbers = [number for number in inherited if os.path.exists(f"/proc/self/fd/{number}")]
    if max(numbers) > 2 and not any(word.startswith(_MULTIPROCESSING) for word in sys.orig_argv):
        return  # torch's own compile workers have pipes, too, and end when they are not children of the one who started them
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["CONFORMANCE_ZYGOTE"])
    request = {"argv": sys.orig_argv, "cwd": os.getcwd(), "env": dict(os.environ), "descriptors": numbers}
    socket.send_fds(connection, [json.dumps(request).encode()], numbers)
    answers = connection.makefile()
    if answers.readline() != "yes\n":
        return
    code = int(answers.readline() or 70)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


class _AfterTorch:
    """Finds `torch` as everybody does, and holds compiles when it has been imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec: Any = importlib.util.find_spec("torch")
        if spec is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            _hold()

        spec.loader.exec_module = exec_module
        return spec


def _hold() -> None:
    from pathlib import Path

    from conformance.triage import held_process, hold

    held_process.enter(
        hold.Hold.from_json(os.environ[hold.HOLD_VARIABLE]), hold.Journal(Path(os.environ[hold.JOURNAL_VARIABLE]))
    )


def _next_sitecustomize() -> None:
    """The one that this file stands before."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "CONFORMANCE_HOLD" in os.environ:
    os.environ["CONFORMANCE_DEPTH"] = str(int(os.environ.get("CONFORMANCE_DEPTH", "0")) + 1)
    if int(os.environ["CONFORMANCE_DEPTH"]) > _DEEPEST:
        print(f"triage: interpreters start interpreters, more than {_DEEPEST} deep", file=sys.stderr)
        os._exit(70)
    if "CONFORMANCE_ZYGOTE" in os.environ:
        with contextlib.suppress(OSError, ValueError):
            _handed_over()
    sys.meta_path.insert(0, _AfterTorch())
_next_sitecustomize()

"""A process that compiled nothing: it loads saved programs, runs them, and hands back what they left behind.

It is started once and asked many times, since importing torch_tensorrt takes seconds."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

from conformance import oracle
from conformance.library import load


class Loader:
    def __init__(self) -> None:
        root = Path(__file__).resolve().parents[3]
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=root
        )
        atexit.register(self.close)

    @staticmethod
    @cache
    def get() -> Loader:
        return Loader()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def run(self, program: Path, inputs: tuple[Any, ...], calls: int, needs: str = "") -> oracle.Outcome:
        """needs: a file of micrographs that is imported first, since a program may call ops that it registers."""
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            given, left = Path(folder) / "given.pt", Path(folder) / "left.pt"
            torch.save((inputs, calls), given)
            answer = self._ask({"program": str(program), "given": str(given), "left": str(left), "needs": needs})
            if answer.get("error"):
                return oracle.Outcome(error=RuntimeError(answer["error"]))
            outcome: oracle.Outcome = torch.load(left, weights_only=False)
            return outcome

    def _ask(self, request: dict[str, str]) -> dict[str, str]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:  # what the library prints while it is imported stands between
            if line.startswith('{"error"'):
                answer: dict[str, str] = json.loads(line)
                return answer
        return {"error": "the process that loads programs ended"}


def serve() -> None:
    from conformance.backends.torch_tensorrt.api import library

    loaded = library()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["needs"]:
                load(request["needs"])
            inputs, calls = torch.load(request["given"], weights_only=False)
            program = loaded.torch_tensorrt.load(request["program"])
            module = program.module() if hasattr(program, "module") else program
            outcome = oracle.run(module, inputs, None, calls=calls)
            if outcome.error is not None:
                raise outcome.error
            outcome.live = []
            torch.save(outcome, request["left"])
            error = ""
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"[:2000]
        print(json.dumps({"error": error}), flush=True)


if __name__ == "__main__":
    serve()

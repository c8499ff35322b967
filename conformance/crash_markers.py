"""Who was at work when a process died: a file for each examination under way, so that a crash or a hang is a verdict."""

from __future__ import annotations

import faulthandler
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from conformance.verdict import Verdict

ABANDONED = "Abandoned: "


class Journal:
    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit
        folder.mkdir(parents=True, exist_ok=True)

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.log"

    def died(self, key: str) -> tuple[Verdict, str] | None:
        """How an earlier process died at this examination; None when none did (or when it was killed from outside)."""
        try:
            text = self._file(key).read_text(errors="replace")
        except OSError:
            return None
        if text.startswith(ABANDONED):
            return Verdict.ERROR, text.removeprefix(ABANDONED).strip()
        if "Timeout (" in text:
            return Verdict.TIMEOUT, f"no end after {self.limit:.0f} s, in {_innermost(text)}"
        if "Fatal Python error" in text:
            cause = text.split("Fatal Python error:", 1)[1].splitlines()[0].strip()
            return Verdict.ERROR, f"the process died: {cause}, in {_innermost(text)}"
        return None

    def gone(self, key: str) -> tuple[Verdict, str]:
        """For a process that is known to be dead."""
        return self.died(key) or (Verdict.ERROR, "the process died without a word (killed, out of memory, or exit() was called)")

    def abandon(self, key: str, reason: str) -> NoReturn:
        """End this process, which can do nothing more, and say why."""
        self._file(key).write_text(f"{ABANDONED}{reason}\n")
        os._exit(1)

    @contextmanager
    def at_work(self, key: str) -> Iterator[None]:
        """A fatal signal or the time limit ends the process; what it was doing then stands in the file."""
        file = self._file(key)
        with file.open("w") as out:
            faulthandler.enable(out)
            faulthandler.dump_traceback_later(self.limit, exit=True, file=out)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
                faulthandler.enable(sys.__stderr__ or sys.stderr)
        file.unlink(missing_ok=True)

    def close(self) -> None:
        for file in self.folder.glob("*.log"):
            file.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _innermost(text: str) -> str:
    """The innermost frame of the thread that died; where the time was up, of the main thread, which is listed last."""
    threads = text.split("Current thread" if "Current thread" in text else "Thread 0x")
    frames = [line.strip() for line in threads[-1].splitlines() if line.strip().startswith("File ")]
    return re.sub(r'"/.*/', '"', frames[0]) if frames else "native code"

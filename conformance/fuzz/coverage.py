"""What a session has done, and what its compiles gave: counted from the structured trace."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from conformance.backends.inductor.seam import TRACE_LOG
from conformance.backends.inductor.watch import listening
from conformance.trace import digest


@dataclass
class Tally:
    """What a session has done."""

    examples: int = 0
    rejected: int = 0
    compiles: int = 0
    guards: set[str] = field(default_factory=set)
    kernels: set[str] = field(default_factory=set)


class Coverage(logging.Handler):
    """Counts, from the structured trace, compiles and the distinct guards and programs that they gave."""

    def __init__(self, tally: Tally) -> None:
        super().__init__(logging.DEBUG)
        self.tally = tally

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None) or {}
        payload = getattr(record, "payload", None)
        names = {*metadata, (metadata.get("artifact") or {}).get("name", "")}
        if "dynamo_output_graph" in names:
            self.tally.compiles += 1
        elif "inductor_output_code" in names and isinstance(payload, str):
            self.tally.kernels.add(
                digest("\n".join(line for line in payload.splitlines() if not line.lstrip().startswith("#")))
            )
        elif "dynamo_cpp_guards_str" in names and isinstance(payload, str):
            self.tally.guards.add(digest(_plain_guards(payload)))


def _plain_guards(text: str) -> str:
    """Without what differs in every process: addresses, and the comments that name lines."""
    return "\n".join(re.sub(r"\b\d{6,}\b|0x[0-9a-f]+", "#", line.split("  # ")[0]) for line in text.splitlines())


@contextmanager
def counted(tally: Tally) -> Iterator[None]:
    """The trace is for us alone: whoever keeps all logs (pytest does) would keep thousands of empty lines."""
    log = logging.getLogger(TRACE_LOG)
    before, log.propagate = log.propagate, False
    try:
        with listening(Coverage(tally)):
            yield
    finally:
        log.propagate = before

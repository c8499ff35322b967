"""What the suite says of a cell: a verdict, and the findings that led to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Verdict(str, Enum):
    PASS = "pass"
    FAIL = "fail"
    FALLBACK = "fallback"  # right answer, but the compiler did not do the work
    UNSUPPORTED = "unsupported"  # the backend says so
    UNAVAILABLE = "unavailable"  # cannot be observed here
    BLOCKED = "blocked"  # an earlier stage failed
    XFAIL = "xfail"
    XPASS = "xpass"
    ERROR = "error"  # the compiler crashed
    TIMEOUT = "timeout"

    def __str__(self) -> str:
        return self.value

    @property
    def sign(self) -> str:
        return SIGNS[self]

    @property
    def unexpected(self) -> bool:
        """Does this verdict make a run fail?"""
        return self in {Verdict.FAIL, Verdict.FALLBACK, Verdict.XPASS, Verdict.ERROR, Verdict.TIMEOUT}

    @property
    def blocks(self) -> bool:
        """After this verdict, are later stages of the same compile `blocked`?"""
        return self in {
            Verdict.FAIL,
            Verdict.FALLBACK,
            Verdict.XFAIL,
            Verdict.ERROR,
            Verdict.TIMEOUT,
            Verdict.UNSUPPORTED,
        }


SIGNS = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✗",
    Verdict.FALLBACK: "↩",
    Verdict.UNSUPPORTED: "–",
    Verdict.UNAVAILABLE: "·",
    Verdict.BLOCKED: "▫",
    Verdict.XFAIL: "x",
    Verdict.XPASS: "!",
    Verdict.ERROR: "E",
    Verdict.TIMEOUT: "T",
}


class Kind(str, Enum):
    """The ways in which a compiler is wrong."""

    GRAPH_BREAK = "graph_break"
    EXTRA_RECOMPILE = "extra_recompile"
    MISSED_RECOMPILE = "missed_recompile"
    UNDECOMPOSED = "undecomposed"
    LOST_MUTATION = "lost_mutation"
    LOST_ALIAS = "lost_alias"
    MATCH_LOSS = "match_loss"
    METADATA_LOSS = "metadata_loss"
    UNFUSED = "unfused"
    OVERFUSED = "overfused"
    BAD_CODE = "bad_code"
    WRONG_RESULT = "wrong_result"
    WRONG_METADATA = "wrong_metadata"
    NUMERIC_DRIFT = "numeric_drift"
    STALE_OUTPUT = "stale_output"
    REPLAY_MISMATCH = "replay_mismatch"
    CACHE_MISS = "cache_miss"
    STALE_CACHE = "stale_cache"
    LOST_VALIDATION = "lost_validation"  # eager raises, the compiled program does not
    UNOBSERVED = "unobserved"  # nobody looked, where somebody should have
    CRASH = "crash"
    TIMEOUT = "timeout"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, and the check that saw it."""

    kind: Kind
    check: str
    detail: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind.value, "check": self.check, "detail": self.detail}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Finding:
        return cls(Kind(data["kind"]), str(data["check"]), str(data["detail"]))

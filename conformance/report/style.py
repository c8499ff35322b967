"""How verdicts and classes look: sign, ASCII sign and colour, the same in the terminal, on the page and in Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.report import facts
from conformance.stage import STAGES
from conformance.verdict import Verdict


@dataclass(frozen=True)
class Look:
    """word: as it is written in the record. style: of the terminal. unexpected: makes a run fail."""

    word: str
    sign: str
    ascii: str
    style: str
    meaning: str
    unexpected: bool = False


_STYLES = {
    Verdict.PASS: ("+", "green", "the compiler did the work, and all checks hold"),
    Verdict.FAIL: ("X", "bold red", "a check found something wrong"),
    Verdict.FALLBACK: ("<", "yellow", "right answer, but the compiler did not do the work"),
    Verdict.UNSUPPORTED: ("-", "dim", "the backend says that it does not do this"),
    Verdict.UNAVAILABLE: (".", "dim", "cannot be observed here"),
    Verdict.BLOCKED: ("o", "dim", "an earlier stage failed"),
    Verdict.XFAIL: ("x", "blue", "fails as expected"),
    Verdict.XPASS: ("!", "bold yellow", "passes, though a failure was expected"),
    Verdict.ERROR: ("E", "bold red", "the compiler crashed"),
    Verdict.TIMEOUT: ("T", "bold red", "the compiler did not end"),
}
LOOKS: dict[str, Look] = {
    verdict.value: Look(verdict.value, verdict.sign, *_STYLES[verdict], verdict.unexpected) for verdict in Verdict
}
# The order in which people care; also that of legends and totals.
ORDER = ("pass", "fail", "error", "timeout", "fallback", "xpass", "xfail", "blocked", "unsupported", "unavailable")

# The classes of a difference between two records.
CLASS_LOOKS: dict[str, Look] = {
    facts.WRONG: Look("wrong or crash", "✗", "X", "bold red", "it was right, or failed otherwise, and is wrong now"),
    facts.FIXED: Look("fixed", "✓", "+", "green", "it was wrong and is right now"),
    facts.LOST: Look("fallback or lost match", "↩", "<", "yellow", "the compiler no longer does this work"),
    facts.MORE: Look("costs more", "▲", "^", "yellow", "more kernels, bytes, temporaries, recompiles or graph breaks"),
    facts.FEWER: Look("costs less", "▼", "v", "green", "fewer kernels, bytes, temporaries, recompiles or graph breaks"),
    facts.CODE: Look("other code", "→", ">", "blue", "other ops or code, with the same counts"),
    facts.BOOKKEEPING: Look(
        "bookkeeping", "~", "~", "dim", "guard names, metadata, digests: nothing that a user pays for"
    ),
}

# One letter a stage, where seven columns must fit into thirteen characters.
LETTERS = {
    "capture": "c",
    "decomposition": "d",
    "postgrad": "p",
    "fusion": "f",
    "codegen": "g",
    "runtime": "r",
    "cache": "k",
}


def counted(number: int, noun: str) -> str:
    """`1 cell`, `2,000 cells`"""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def look(word: str) -> Look:
    """An unknown verdict (of a newer schema) is shown as one, and never counted as a pass."""
    return LOOKS.get(word) or Look(word, "?", "?", "magenta", "a verdict that this version does not know")


def rank(word: str) -> int:
    return ORDER.index(word) if word in ORDER else len(ORDER)


def stage_rank(stage: str) -> tuple[int, str]:
    """Stages in the order of a compile; unknown ones after them."""
    return (_STAGE_RANKS.get(stage, len(_STAGE_RANKS)), stage)


_STAGE_RANKS = {stage.value: index for index, stage in enumerate(STAGES)}

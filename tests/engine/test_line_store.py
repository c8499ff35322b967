"""Answers kept as JSON Lines: what was being written when a process was stopped costs that line and no other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from conformance.line_store import LineStore


@dataclass
class Answer:
    name: str
    value: int = 0


def store(path: Path | None) -> LineStore[Answer]:
    return LineStore(path, Answer, lambda answer: answer.name)


def test_the_last_line_of_a_key_counts_and_half_a_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    first = store(path)
    for answer in (Answer("a", 1), Answer("b", 2), Answer("a", 3)):
        first.keep(answer)
    with path.open("a") as out:
        out.write('{"name": "c", "val\n{"name": "d", "unknown": 1}\n{"name": "e"')
    assert store(path).known == first.known == {"a": Answer("a", 3), "b": Answer("b", 2)}


def test_without_a_path_nothing_is_written() -> None:
    nowhere = store(None)
    nowhere.keep(Answer("a"))
    assert nowhere.known == {"a": Answer("a")}

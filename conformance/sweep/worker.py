"""A worker: runs in the interpreter of one environment and does what it is told, a line of JSON each way.

    → {"open": work, "argv": […], "list": true}      ← {"hello": header, "patterns": […], "key": …, "units": […]}
    → {"run": {unit: [names of lines]}}              ← {"begun": unit} … {"unit", "key", "line", "texts"} … {"done": true}
    → {"lost": unit, "names": […], "reason": …}      ← lines, {"done": true}

A mistake of the user is answered with {"refused": one line}. What compilers print goes to stderr: stdout belongs to the answers.
A worker ends with its parent, or when there is nothing more to read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from conformance.errors import UsageError, first_line
from conformance.json_line import json_line
from conformance.processes import die_with_parent
from conformance.sweep.kinds import Kind, kind_of
from conformance.sweep.spec import Work

PARENT = "CONFORMANCE_SWEEP_PARENT"  # the process that started the worker: it may be gone before the worker can ask


def main() -> None:
    die_with_parent()
    if os.environ.get(PARENT, str(os.getppid())) != str(os.getppid()):
        return
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # a compiler that reads from a terminal gets nothing
    answer_all(questions, out)


def answer_all(questions: BinaryIO, out: BinaryIO) -> None:
    kind: Kind | None = None
    for raw in questions:
        question = msgspec.json.decode(raw)
        try:
            if "open" in question:
                kind = kind_of(msgspec.convert(question["open"], Work))
                _say(out, _hello(kind, question))
                continue
            if kind is None:
                raise UsageError("the first question to a worker must be `open`")
            for message in _asked(kind, question):
                _say(out, message)
            _say(out, {"done": True})
        except UsageError as error:
            _say(out, {"refused": str(error)})
        except Exception as error:  # a defect of the suite, or an environment in which it cannot even be imported
            _say(out, {"refused": f"the worker failed: {first_line(error)}"})


def _hello(kind: Kind, question: dict[str, Any]) -> dict[str, Any]:
    units = kind.units() if question.get("list") else []
    return {"hello": kind.header(question["argv"]), "patterns": kind.patterns, "key": kind.key, "units": units}


def _asked(kind: Kind, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "run" in question:
        return kind.run(question["run"])
    return kind.lost(question["lost"], question["names"], question["reason"])


def _say(out: BinaryIO, message: dict[str, Any]) -> None:
    out.write(json_line(message) + b"\n")
    out.flush()


if __name__ == "__main__":
    main()

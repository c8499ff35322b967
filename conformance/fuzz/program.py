"""A program of a grammar as plain data, and the module that its text makes."""

from __future__ import annotations

import hashlib
import json
import linecache
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

from conformance.errors import UsageError, unknown
from conformance.fuzz.grammar import Grammar
from conformance.fuzz.grammars import GRAMMARS

SCHEMA = "conformance/program/1"
NUMBERS = count()  # of the modules that were made in this process

PRELUDE = """import torch
import torch.nn.functional as F
"""
UNIQUE = """

def unique(name):
    return __name__.strip("_") + "::" + name
"""
PLAY = """

def play(compile):
    args = inputs()
    out = compile(f)(*args)
    return after(out, args)
"""
PLAY_WITH_LOSS = """

def play(compile):
    args = inputs()
    out = compile(f)(*args)
    if (value := loss(out)).requires_grad:
        value.backward()
    return after(out, args)
"""
AFTER = """

def after(out, args):
    return out, args
"""


@dataclass(frozen=True)
class Program:
    """The choices of a grammar, as pairs of slot and key."""

    grammar: str
    choices: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, grammar: Grammar, choices: dict[str, str]) -> Program:
        return cls(grammar.name, tuple(choices.items()))

    @property
    def rules(self) -> Grammar:
        return GRAMMARS[self.grammar]

    @cached_property
    def source(self) -> str:
        """The program as text: it defines `play(compile)`."""
        body = self.rules.source(dict(self.choices))
        text = PRELUDE + (UNIQUE if "unique(" in body else "") + "\n" + body
        if self.rules.alone:
            return text
        return text + ("" if "def after(" in text else AFTER) + (PLAY_WITH_LOSS if "def loss(" in text else PLAY)

    @property
    def id(self) -> str:
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:8]

    @property
    def cause(self) -> tuple[str, ...]:
        return self.rules.cause_of(dict(self.choices))

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "grammar": self.grammar, "choices": dict(self.choices)}

    @classmethod
    def from_json(cls, data: Any, where: str = "the program") -> Program:
        """The program that a file's data describes. Nothing in it is run: each word must stand in a table."""
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise UsageError(f"{where} is not a program: expected schema {SCHEMA!r}")
        grammar = data.get("grammar")
        if grammar not in GRAMMARS:
            raise unknown("grammar", str(grammar)[:60], GRAMMARS)
        if problem := GRAMMARS[grammar].problem(data.get("choices")):
            raise UsageError(f"{where} is damaged: {problem}")
        return cls.of(GRAMMARS[grammar], {slot: data["choices"][slot] for slot in GRAMMARS[grammar].slots})


@contextmanager
def module_of(program: Program) -> Iterator[types.ModuleType]:
    """The program's text as a module of its own, which Dynamo and `inspect` find by its name; gone afterwards."""
    name = f"fuzz_program_{next(NUMBERS)}"
    module = types.ModuleType(name)
    file = module.__file__ = f"<{name}>"
    linecache.cache[file] = (len(program.source), None, program.source.splitlines(keepends=True), file)
    sys.modules[name] = module
    try:
        exec(compile(program.source, file, "exec"), module.__dict__)
        yield module
    finally:
        sys.modules.pop(name, None)
        linecache.cache.pop(file, None)

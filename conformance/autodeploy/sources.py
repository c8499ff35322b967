"""What a checkout already has: its transforms and custom ops, each with file, line and symbol as evidence.

Read from the sources, so that kernels that are not built here are found too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TRANSFORM = re.compile(r"TransformRegistry\.register\(\s*[\"'](\w+)[\"']\s*\)")
CUSTOM_OP = re.compile(r"(?:custom_op|triton_op)\(\s*[\"'](\w+)::(\w+)[\"']")
SYMBOL = re.compile(r"^(?:class|def) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    kind: str  # transform | custom op
    name: str  # fuse_rmsnorm | auto_deploy::flashinfer_rms_norm
    file: str  # relative to the checkout
    line: int
    symbol: str  # the class or function it decorates

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.symbol} ({self.kind} {self.name})"


@cache
def entries(root: Path) -> tuple[Entry, ...]:
    """Everything registered under `transform/library` and `custom_ops`."""
    package = root / "tensorrt_llm" / "_torch" / "auto_deploy"
    package = package if package.is_dir() else root
    found: list[Entry] = []
    for folder, pattern, kind in (
        ("transform/library", TRANSFORM, "transform"),
        ("custom_ops", CUSTOM_OP, "custom op"),
    ):
        for file in sorted((package / folder).rglob("*.py")):
            text = file.read_text(errors="replace")
            for match in pattern.finditer(text):
                symbol = SYMBOL.search(text, match.end())
                name = match[1] if kind == "transform" else f"{match[1]}::{match[2]}"
                line = text.count("\n", 0, match.start()) + 1
                found.append(Entry(kind, name, str(file.relative_to(root)), line, symbol[1] if symbol else ""))
    return tuple(found)


def search(root: Path, words: tuple[str, ...], avoid: tuple[str, ...] = ()) -> list[Entry]:
    """Entries whose name has all the words, plainest names first: quantized and distributed kin come last."""
    named = [
        e for e in entries(root) if all(w in _plain(e.name) for w in words) and not any(a in e.name for a in avoid)
    ]
    return sorted(named, key=lambda e: (e.kind != "custom op", len(e.name), e.name))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()

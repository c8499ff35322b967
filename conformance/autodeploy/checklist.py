"""The review checklist of a transform, as far as it can be read from a checkout."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from conformance.autodeploy.sources import entries
from conformance.errors import unknown

TESTS = Path("tests") / "unittest" / "auto_deploy"
# How tests say that nothing must match: by name, or by asserting zero or absence.
ABSENT = re.compile(
    r"not_fus|no_fus|non_?match|no_match|not_match|unfused|should_not|skip|negative|does_not|without|untouched|unchanged|reject",
    re.I,
)
ZERO = re.compile(r"(?:num_matches|matches|count|cnt|n_fused|num_\w+)\w*\s*==\s*0\b|assert not (?:any|has)|not any\(")


@dataclass(frozen=True)
class Item:
    what: str
    done: bool
    evidence: str

    def __str__(self) -> str:
        return f"[{'x' if self.done else ' '}] {self.what}: {self.evidence}"


def review(name: str, root: Path) -> list[Item]:
    transforms = {e.name: e for e in entries(root) if e.kind == "transform"}
    if name not in transforms:
        raise unknown("transform", name, transforms)
    return [
        Item("registered", True, str(transforms[name])),
        _listed(name, root),
        *_tested(name, transforms[name].symbol, root),
    ]


def _listed(name: str, root: Path) -> Item:
    file = root / "tensorrt_llm" / "_torch" / "auto_deploy" / "config" / "default.yaml"
    file = file if file.is_file() else root / "config" / "default.yaml"
    if not file.is_file():
        return Item("listed in default.yaml", False, "there is no config/default.yaml")
    block = re.search(rf"^  {re.escape(name)}:\n((?:    .*\n|\s*\n)*)", file.read_text(), re.MULTILINE)
    if not block:
        return Item("listed in default.yaml", False, f"{file.relative_to(root)} does not name it")
    stage = re.search(r"stage: (\w+)", block[1])
    enabled = "off" if re.search(r"enabled: false", block[1]) else "on"
    if not stage:
        return Item("listed in default.yaml", False, "its entry has no stage, which its peers have")
    return Item("listed in default.yaml", True, f"stage {stage[1]}, {enabled} by default")


def _tested(name: str, symbol: str, root: Path) -> list[Item]:
    folder = root / TESTS
    if not folder.is_dir():
        missing = f"no tests in this checkout ({TESTS})"
        return [Item("tests cover a match", False, missing), Item("tests cover a non-match", False, missing)]
    match: list[str] = []
    other: list[str] = []
    for file in sorted(folder.rglob("test_*.py")):
        text = file.read_text(errors="replace")
        if not re.search(rf"[\"']{re.escape(name)}[\"']|\b{re.escape(symbol)}\b", text):
            continue
        for function, body in _functions(text):
            place = f"{file.relative_to(root)}::{function}"
            (other if ABSENT.search(function) or ZERO.search(body) else match).append(place)
    return [_item("tests cover a match", match), _item("tests cover a non-match", other)]


def _functions(text: str) -> list[tuple[str, str]]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
    return [(node.name, ast.get_source_segment(text, node) or "") for node in found]


def _item(what: str, places: list[str]) -> Item:
    more = f" and {len(places) - 2} more" if len(places) > 2 else ""
    return Item(what, bool(places), ", ".join(places[:2]) + more if places else "none found")

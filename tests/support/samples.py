"""Records made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conformance import record, record_writer

Write = Callable[..., Path]
STAGES = ("capture", "decomposition", "postgrad", "fusion", "codegen", "runtime", "cache")


def header(torch: str = "2.14.1", **more: Any) -> dict[str, Any]:
    backends = {name: {"torch": torch} for name in ("eager", "inductor", "torch_tensorrt", "autodeploy")}
    env = {"torch": torch, "python": "3.11.7", "machine": "x86_64", "cpu": "AVX512", "backends": backends}
    head = {"schema": record.SCHEMA, "suite": "abc123", "env": env, "argv": ["conformance", "run"]}
    return {**head, "started": "2026-11-15T00:00:00", "expectations": "e1", **more}


def cell(name: str, verdict: str = "pass", **more: Any) -> dict[str, Any]:
    return {
        "cell": name,
        "verdict": verdict,
        "reason": "",
        "findings": [],
        "observation": {},
        "texts": {},
        "seconds": 0.1,
        **more,
    }


def finding(kind: str, detail: str = "", check: str = "C1") -> dict[str, str]:
    return {"kind": kind, "check": check, "detail": detail}


def compile_of(
    micrograph: str, backend: str, target: str, verdicts: Mapping[str, str] | None = None, **observed: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The seven cells of one compile: pass, but for the stages named; `observed` gives a stage its facts."""
    return [
        cell(
            f"{stage}/{backend}/{target}/{micrograph}",
            (verdicts or {}).get(stage, "pass"),
            observation=dict(observed.get(stage, {})),
        )
        for stage in STAGES
    ]


def write_record(path: Path, cells: list[dict[str, Any]], texts: Mapping[str, str] | None = None, **head: Any) -> Path:
    """A record of these lines, with these texts beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for text in (texts or {}).values():
        record_writer.keep_text(record.texts_folder(path), text)
    path.write_text("\n".join(json.dumps(line) for line in [header(**head), *cells]) + "\n", encoding="utf-8")
    return path

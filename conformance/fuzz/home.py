"""Where the fuzzer keeps what it must remember: findings, progress, the database of failing examples."""

from __future__ import annotations

from pathlib import Path

from conformance import paths


def home() -> Path:
    return paths.state("fuzz")

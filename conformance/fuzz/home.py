"""Where the fuzzer keeps what it must remember: findings, progress, the database of failing examples."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.environment import ROOT


def home() -> Path:
    return Path(os.environ.get("CONFORMANCE_HOME") or ROOT / ".conformance") / "fuzz"

"""The suite's revision: a digest of the engine and the micrographs, whether it is a checkout, an installed wheel, or a copy on a node of a
cluster. Needs no torch."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from conformance import paths

IN_A_WHEEL = {"data", "stages"}  # folders that lie beside the package in a checkout


@cache
def revision() -> str:
    inside = (
        path for path in paths.PACKAGE.glob("**/*.py") if path.relative_to(paths.PACKAGE).parts[0] not in IN_A_WHEEL
    )
    return digest(sorted([*inside, *paths.micrographs().glob("**/*.py")]))


@cache
def commit() -> str:
    try:
        out = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=paths.PACKAGE, capture_output=True, text=True, timeout=10
        )
        return out.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def digest(files: Iterable[Path]) -> str:
    hashed = hashlib.sha256()
    for file in files:
        hashed.update(file.name.encode() + file.read_bytes())
    return hashed.hexdigest()[:12]

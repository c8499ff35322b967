"""A seeded fault as a plain pytest plugin: `pytest -p conformance.seeded.plugin --seeded NAME` (or CONFORMANCE_FAULT=NAME).

Every process that loads it has the fault from its start to its end: workers and the fresh process of the cache stage too.
"""

from __future__ import annotations

import os
from typing import Any

from conformance import plugins, seeded

VARIABLE = "CONFORMANCE_FAULT"
_active: list[Any] = []


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--seeded", metavar="NAME", default="", help="a seeded fault: `conformance selftest --list` names them"
    )


def pytest_configure(config: Any = None) -> None:
    name = getattr(getattr(config, "option", None), "seeded", "") or os.environ.get(VARIABLE, "")
    if not name or _active:
        return
    os.environ[VARIABLE] = name
    plugins.announce([__name__])
    chosen = seeded.get(name)
    chosen.__enter__()
    _active.append(chosen)  # for as long as the process lives

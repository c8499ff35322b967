"""A pytest plugin: of the given files only the tests that a fix added or changed, each answer appended to a file.

Loaded in the interpreter under test, so nothing but the standard library and pytest.
"""

import json
import os
from typing import Any

import pytest

with open(os.environ["CONFORMANCE_CHOSEN"], encoding="utf-8") as _file:
    CHOSEN = json.load(_file)  # {"methods": names, "known": names of all tests, "most": a method, "out": file}


def method_of(name: str) -> str:
    """The method that a test's name was made from: `test_sum_cpu_float32` from `test_sum`, where there is no longer one."""
    plain = name.split("[")[0]
    return max((m for m in CHOSEN["known"] if plain == m or plain.startswith(m + "_")), key=len, default=plain)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    wanted: list[Any] = []
    taken: dict[str, int] = {}
    for item in items:
        method = method_of(item.name)
        if method in CHOSEN["methods"] and taken.get(method, 0) < CHOSEN["most"]:
            taken[method] = taken.get(method, 0) + 1
            wanted.append(item)
    items[:] = wanted


def tell(**said: Any) -> None:
    with open(CHOSEN["out"], "a", encoding="utf-8") as out:
        out.write(json.dumps(said) + "\n")


def pytest_collectreport(report: Any) -> None:
    if report.outcome == "failed":
        lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
        tell(test=report.nodeid, outcome="not imported", line=(lines or [""])[-1][:300])


def pytest_runtest_logreport(report: Any) -> None:
    """A test that fails in one of its parts has failed; each part that does is told, and the call in any case."""
    if report.when == "call" or report.outcome != "passed":
        outcome = "expected" if hasattr(report, "wasxfail") else report.outcome
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(crash, "message", "")
        tell(test=report.nodeid, outcome=outcome, line=" ".join(str(reason or "").split())[:300])

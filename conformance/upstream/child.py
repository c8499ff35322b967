"""One pytest session over upstream test files, in the interpreter under test; a JSON line for everything that happens.

Started by `launch.py` as `python child.py SETTINGS.json`, or in a fork of `server.py`. Python 3.9, nothing but pytest and
what the tests import.
The protocol, one object a line of the events file:

    {"event": "collected", "tests": [...], "errors": [{...}], "guards": {...}, "rung": "..."}
    (then it waits for the selection file: the list of tests to run)
    {"event": "start", "test": "..."}
    {"event": "end", "test": "...", "outcome": "passed|failed|stopped|skipped|xfailed|xpassed", "seconds": 0.1, ...}
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator
from types import ModuleType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
if sys.path and os.path.abspath(sys.path[0]) == HERE:  # Python puts a script's folder there; the tests must not see it
    del sys.path[0]

import pytest  # noqa: E402

FRAMES = 40
MESSAGE = 2000


def beside(name: str) -> Any:
    """A module of this folder, without putting the folder on the path of the tests."""
    spec = importlib.util.spec_from_file_location("conformance_upstream_" + name, os.path.join(HERE, name + ".py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Events:
    """Appends to the events file with one system call a line, so that a crash loses nothing."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._process = os.getpid()

    def add(self, event: str, **fields: Any) -> None:
        if os.getpid() == self._process:  # a test may fork
            os.write(
                self._file, (json.dumps({"event": event, **fields}, default=str) + "\n").encode("utf-8", "replace")
            )


class Reporter:
    """The pytest plugin: collects, waits for the selection, reports each test."""

    def __init__(self, settings: dict[str, Any], ladder: Any, bootstrap: Any, guard: Any) -> None:
        self.settings, self.ladder, self.bootstrap, self.guard = settings, ladder, bootstrap, guard
        self.assertions = beside("assertions")
        self.events = Events(settings["events"])
        self.errors: list[dict[str, Any]] = []
        self.reports: list[dict[str, Any]] = []
        self.started = 0.0
        self.rung_refusal = ""

    # ------------------------------------------------------------------------------------- collection

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome == "passed":
            return
        file = report.nodeid.partition("::")[0]
        if report.outcome == "skipped":
            self.errors.append({"file": file, "outcome": "skipped", "line": _skip_reason(report)})
        else:
            told = getattr(report, "conformance_failure", {"line": _last_line(report)})
            self.errors.append({"file": file, "outcome": "failed", **told})

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, None]:
        report = (yield).get_result()
        call = getattr(report, "call", None)
        if report.outcome == "failed" and call is not None and call.excinfo is not None:
            report.conformance_failure = described(_innermost(call.excinfo.value))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session: Any, config: Any, items: list[Any]) -> None:
        by_name = {item.nodeid: item for item in items}
        if self.bootstrap:
            self.bootstrap.collected()
        self.events.add(
            "collected",
            tests=list(by_name),
            errors=self.errors,
            guards={file: said for file in self.settings["files"] for said in [self._refusal(file)] if said},
            rung=self.rung_refusal,
        )
        wanted = self._selection()
        items[:] = [by_name[name] for name in wanted if name in by_name]

    def _refusal(self, name: str) -> str | None:
        """Why upstream would not run this file here; a file that makes no tests here may say so, too."""
        file = os.path.join(self.settings["root"], name)
        module = next((one for one in list(sys.modules.values()) if getattr(one, "__file__", None) == file), None)
        if module is None or not self.settings["main_guard"]:
            return None
        with open(file, encoding="utf-8", errors="replace") as source:
            return self.guard.refusal(source.read(), vars(module))

    def _selection(self) -> list[str]:
        """What the parent wants run; it answers as soon as it has read what was collected."""
        while not os.path.exists(self.settings["selection"]):
            time.sleep(0.02)
        with open(self.settings["selection"], encoding="utf-8") as file:
            return json.load(file)

    # ------------------------------------------------------------------------------------- running

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.reports, self.started = [], time.monotonic()
        if self.ladder:
            self.ladder.layers_of_test()
        if self.bootstrap:
            self.bootstrap.begin()
        self.events.add("start", test=nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        report = (yield).get_result()
        found: dict[str, Any] = {"when": report.when, "outcome": report.outcome, "line": ""}
        if hasattr(report, "wasxfail"):
            found.update(outcome="xfailed" if report.outcome == "skipped" else "xpassed", line=str(report.wasxfail))
        elif report.outcome == "skipped":
            found["line"] = _skip_reason(report)
        elif report.outcome == "failed":
            found.update({"line": _last_line(report)} if call.excinfo is None else described(call.excinfo.value))
            if found.get("type") == "Stopped":  # bootstrap.Stopped: a GPU would have to go on
                held = self.assertions.held_before(call.excinfo.tb, self.settings["root"])
                found.update(outcome="stopped", facts={**call.excinfo.value.facts, "asserted": held})
            if "Unexpected success" in found["line"] or "[XPASS(strict)]" in found["line"]:
                found["outcome"] = "xpassed"
        self.reports.append(found)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A failing subtest makes no `makereport` of its own in some versions of pytest."""
        if type(report).__name__.startswith("Sub") and report.outcome == "failed":
            self.reports.append({"when": "call", "outcome": "failed", "line": _last_line(report)})

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        order = ("failed", "stopped", "xpassed", "xfailed", "skipped")
        told = next((report for outcome in order for report in self.reports if report["outcome"] == outcome), None)
        told = dict(
            told or {"outcome": "passed" if self.reports else "failed", "line": "" if self.reports else "no report"}
        )
        layers, gone = (self.ladder.layers_of_test(), self.ladder.gone) if self.ladder else ({}, [])
        seconds = round(time.monotonic() - self.started, 3)
        self.events.add("end", test=nodeid, seconds=seconds, layers=layers, gone=gone, **told)


def described(error: BaseException) -> dict[str, Any]:
    """What the parent needs to judge a failure: type, first line, message, frames."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    found = {
        "type": type(error).__name__,
        "line": first_line(error),
        "message": str(error)[:MESSAGE],
        "frames": [[frame.filename, frame.name, frame.lineno, (frame.line or "")[:200]] for frame in frames],
    }
    if isinstance(error, TypeError):
        found["callee"] = _callee(str(error))
    if isinstance(error, AttributeError):
        found["attribute"] = _attribute(error)
    return found


def first_line(error: BaseException) -> str:
    """The type and the first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]) if lines and lines[0].endswith(":") else "".join(lines[:1])
    return (type(error).__name__ + (": " + text if text else ""))[:300]


def _innermost(error: BaseException) -> BaseException:
    """pytest wraps the error of an import that failed; the cause is what failed."""
    while type(error).__name__ == "CollectError" and (error.__cause__ or error.__context__) is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return error


def _callee(message: str) -> str:
    """The module of the function that a TypeError says was called wrongly; empty if it is not one of the compiler's."""
    match = re.match(r"([\w.<>]+)\(\) (got an unexpected|missing \d|takes )", message)
    if not match:
        return ""
    first = match.group(1).split(".")[0]
    for name, module in list(sys.modules.items()):
        owner = vars(module).get(first) if name.startswith(("torch", "tensorrt_llm")) and module is not None else None
        if callable(owner) and getattr(owner, "__module__", "") == name:
            return name
    return ""


def _attribute(error: AttributeError) -> str:
    """The dotted name that was asked for, with the class of its owner; empty where Python does not say (before 3.10)."""
    name, owner = getattr(error, "name", None), getattr(error, "obj", None)
    if not name or owner is None:
        return ""
    if isinstance(owner, ModuleType):
        return owner.__name__ + "." + str(name)
    kind = owner if isinstance(owner, type) else type(owner)
    return f"{kind.__module__}.{kind.__qualname__}.{name}"


def _skip_reason(report: Any) -> str:
    longrepr = report.longrepr
    text = longrepr[2] if isinstance(longrepr, tuple) and len(longrepr) == 3 else str(longrepr)
    return re.sub(r"^(Skipped|unittest.case.SkipTest): ", "", str(text)).strip()[:300]


def _last_line(report: Any) -> str:
    lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
    return (lines[-1].strip() if lines else "failed without a word")[:300]


def leave_with_parent(parent: int) -> None:
    """A killed run must not leave its tests behind: end as soon as the parent is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.killpg(0, signal.SIGKILL)  # the group that was made for this child

    threading.Thread(target=watch, daemon=True).start()


def run(settings: dict[str, Any], parent: int, bootstrap: Any = None) -> int:
    """One session of pytest. `bootstrap` is given where it was started before a fork."""
    leave_with_parent(parent)
    ladder, refusal = None, ""
    if settings["bootstrap"] and bootstrap is None:
        bootstrap = beside("bootstrap").start(settings["bootstrap"], settings)
    if settings["rung"]:
        rungs = beside("rungs")
        ladder = rungs.Ladder(rungs.Rung(**settings["rung"]), tuple(settings["layers"]))
        refusal = ladder.install() or ""
    reporter = Reporter(settings, ladder, bootstrap, beside("main_guard"))
    reporter.rung_refusal = refusal
    return int(pytest.main(settings["arguments"], plugins=[reporter]))


def main(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    return run(settings, settings["parent"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""The pytest plugin: cells become tests, verdicts become outcomes, and every cell goes into the record.

A test asks for the fixture `cell`. Its case is measured in a forked process by the session, which `conformance run` uses too, so that
both say the same. With `-n` (pytest-xdist) every worker has a session of its own.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from conformance import backends, environment
from conformance.cell import Cell
from conformance.errors import UsageError
from conformance.judge import Result
from conformance.measure import CaseServer
from conformance.plan import Plan, PlannedCase, select_cells, select_places
from conformance.plugins import announce
from conformance.record import is_unexpected
from conformance.record_writer import Writer
from conformance.session import Ended, Session
from conformance.stage import STAGES, Stage
from conformance.verdict import Verdict

PROPERTY = "conformance"
pytest_plugins = ["conformance.fuzz.pytest_plugin", "conformance.ops.pytest_plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "PyTorch compiler conformance")
    group.addoption("--backend", action="append", metavar="B", help="a backend (default: all that are installed)")
    group.addoption(
        "--target",
        action="append",
        metavar="T",
        help="cpu, cuda, sm_80, sm_90, sm_100, sm_120 (default: each backend's own)",
    )
    group.addoption(
        "--micrograph",
        action="append",
        metavar="GLOB",
        help="only these micrographs, e.g. 'norm.*'; '*': all (default: the core)",
    )
    group.addoption(
        "--micrographs", metavar="DIR", help="a folder of your own micrographs (default: those of the suite)"
    )
    group.addoption(
        "--expectations", metavar="DIR", help="a folder of your own expectations (default: those of the suite)"
    )
    group.addoption("--record", metavar="FILE", help="write a line a cell to this file, as each ends")
    group.addoption(
        "--resume", action="store_true", help="go on with the record: cells that are in it are not run again"
    )
    group.addoption(
        "--no-baseline", action="store_true", help="do not compare facts with recorded runs of the same version"
    )
    group.addoption(
        "--cell-timeout", type=float, default=300.0, metavar="SECONDS", help="a case that takes longer is a `timeout`"
    )
    group.addoption(
        "--memory-limit", type=float, metavar="GIB", help="a case that takes more memory is an `error` (default: none)"
    )
    group.addoption("--trtllm-src", metavar="DIR", help="a TensorRT-LLM checkout for AutoDeploy (or TRTLLM_SRC)")


def pytest_configure(config: pytest.Config) -> None:
    for stage in STAGES:
        config.addinivalue_line("markers", f"{stage.marker}: the {stage} stage")
    for name in backends.names():
        config.addinivalue_line("markers", f"{name}: cells of the {name} backend")
    announce(name for name in config.option.plugins if not name.startswith(("no:", "conformance")))
    if config.option.trtllm_src:
        os.environ["TRTLLM_SRC"] = config.option.trtllm_src


def pytest_cmdline_main(config: pytest.Config) -> None:
    """With -n, a micrograph's cells stay together."""
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadgroup"


_current: Suite | None = None  # reports come without a config


def pytest_sessionstart(session: pytest.Session) -> None:
    global _current
    try:
        _current = session.config.stash[SUITE] = Suite(session.config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """What a worker is told by the controller: the cells that a resumed record has already."""
    suite = node.config.stash.get(SUITE, None)
    node.workerinput["conformance_done"] = sorted(suite.done) if suite else []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """xdist's own scheduler, but it knows the cells of one compile by their test's name: with pytest 9 it no longer reads the groups
    that it writes into names."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByCase(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("[")[2].partition("]")[0] or nodeid

    return ByCase(config, log)


# ----------------------------------------------------------------------------------------------------- suite


class Suite:
    """What one process of a pytest run knows: the plan, the session, the record."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        named = self._backends(config.option)
        server = self._server(named, config.option)
        self.plan = self._plan(named, config.option)
        self.session = Session(self.plan, server=server)
        self.cases = self.plan.cases()
        self.lines: dict[str, dict[str, Any]] = {}
        self.wanted: list[PlannedCase] = []  # the cases of the collected tests, in their order
        self.results: dict[str, dict[Stage, Result]] = {}
        self.writer: Writer | None = None
        self.done = self._open_record()

    @property
    def worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    @staticmethod
    def _backends(option: Any) -> list[str]:
        """Those that were named, by an option or by a marker."""
        marked = re.findall(r"\w+", option.markexpr or "")
        return list(dict.fromkeys([*(option.backend or []), *(name for name in backends.names() if name in marked)]))

    def _server(self, named: list[str], option: Any) -> CaseServer | None:
        """Started before the library is loaded. Where xdist has workers, these measure, and the controller does not."""
        if option.collectonly or (getattr(option, "numprocesses", None) and not self.worker):
            return None
        server = CaseServer()
        server.prepare((backend.name, target.name) for backend, target in select_places(named, option.target or ()))
        return server

    @staticmethod
    def _plan(named: list[str], option: Any) -> Plan:
        cells = select_cells(named, (), option.target or (), option.micrograph or (), option.micrographs)
        return Plan(
            cells,
            option.micrographs,
            option.expectations,
            baseline=not option.no_baseline,
            timeout=option.cell_timeout,
            memory=int(option.memory_limit * 2**30) if option.memory_limit else None,
            plugins=tuple(name for name in option.plugins if not name.startswith(("no:", "conformance"))),
        )

    def _open_record(self) -> set[str]:
        if self.worker:  # as the controller saw it at the start: a worker started later must collect the same tests
            return set(self.config.workerinput["conformance_done"])  # type: ignore[attr-defined]
        if not self.config.option.record:
            return set()
        argv = list(map(str, self.config.invocation_params.args))
        header = environment.header(["pytest", *argv], self.session.expected.digest)
        self.writer = Writer(Path(self.config.option.record), header, resume=self.config.option.resume)
        self.lines |= self.writer.done
        return set(self.writer.done)

    def want(self, cells: list[Cell]) -> None:
        """The cells of all tests that will run."""
        self.wanted = self.plan.cases(cells)

    def result(self, cell: Cell) -> Result:
        """The result of a cell. Its case is measured when it is first asked for; without xdist all cases go through one session, in the
        order of the tests."""
        key = f"{cell.backend}/{cell.target}/{cell.micrograph}"
        if key not in self.results:
            self._measure(key)
        return self.results[key].pop(cell.stage)

    def _measure(self, key: str) -> None:
        case = next(case for case in self.wanted if str(case) == key)
        running = self.session.run([case], workers=1)
        for event in running:
            if isinstance(event, Ended):
                self.results[str(event.case)] = dict(event.results)

    def add(self, line: dict[str, Any], texts: dict[str, str]) -> None:
        self.lines[line["cell"]] = line
        if self.writer:
            self.writer.add(line, texts)


SUITE = pytest.StashKey[Suite]()


# ------------------------------------------------------------------------------------------------ collection


def stage_of(definition: Any) -> Stage | None:
    return next((stage for stage in STAGES if definition.get_closest_marker(stage.marker)), None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a `cell` is one test for each case, of the stage that its module is marked with."""
    if "cell" not in metafunc.fixturenames:
        return
    suite, stage = metafunc.config.stash[SUITE], stage_of(metafunc.definition)
    assert stage is not None, f"{metafunc.definition.nodeid} asks for a cell, but is not marked with a stage"
    params = [
        pytest.param(
            Cell(stage, case.backend, case.target, case.micrograph),
            id=f"{case.backend}-{case.target}-{case.micrograph}",
            marks=[getattr(pytest.mark, case.backend)],
        )
        for case in suite.cases
    ]
    metafunc.parametrize("cell", params, indirect=True)


def cell_of(item: pytest.Item) -> Cell | None:
    callspec = getattr(item, "callspec", None)
    cell = callspec.params.get("cell") if callspec else None
    return cell if isinstance(cell, Cell) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """All stages of one compile stand together, in order; what a resumed record has is left out."""
    suite = config.stash.get(SUITE, None)
    if suite is None:
        return
    gone = {item for item in items if (cell := cell_of(item)) and str(cell) in suite.done}
    if gone:
        config.hook.pytest_deselected(items=[item for item in items if item in gone])
        items[:] = [item for item in items if item not in gone]
    order = {str(case): index for index, case in enumerate(suite.cases)}

    def place(item: pytest.Item) -> tuple[int, int]:
        cell = cell_of(item)
        if cell is None:
            return (len(order), 0)
        return (order[f"{cell.backend}/{cell.target}/{cell.micrograph}"], cell.stage.order)

    items.sort(key=place)
    suite.want([cell for item in items if (cell := cell_of(item))])


# --------------------------------------------------------------------------------------------------- running


class CellReport:
    """What a test sees of its cell."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.verdict = result.verdict

    def must_hold(self) -> None:
        """Pass, or say why not in the words of the verdict."""
        if self.verdict is Verdict.PASS:
            return
        if self.result.unexpected:
            pytest.fail(self.explain(), pytrace=False)
        if self.verdict is Verdict.XFAIL:
            pytest.xfail(self.result.reason)
        pytest.skip(f"{self.verdict}: {self.result.reason}")

    def explain(self) -> str:
        lines = [f"{self.result.cell}: {self.verdict}: {self.result.reason}"]
        lines += [f"  {finding.check} {finding.kind}: {finding.detail}" for finding in self.result.findings]
        return "\n".join([*lines, f"  look closer: conformance show {self.result.cell}"])


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> CellReport:
    suite: Suite = request.config.stash[SUITE]
    result = suite.result(request.param)
    request.node.user_properties.append(
        (PROPERTY, json.dumps([result.to_json(), result.observation.texts], default=str))
    )
    return CellReport(result)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the controller: every cell that was measured goes into the record."""
    if _current is None or _current.worker:
        return
    for name, value in report.user_properties:
        if name == PROPERTY:
            try:
                _current.add(*json.loads(str(value)))
            except UsageError as error:  # a full disk
                pytest.exit(str(error), returncode=2)
            return


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close the record. Cells that a resumed record had count as if they had run now."""
    global _current
    suite = session.config.stash.get(SUITE, None)
    if suite is not None and suite.writer:
        suite.writer.close()
    if suite is not None and suite.done and not suite.worker:
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if session.exitstatus == pytest.ExitCode.OK and any(is_unexpected(suite.lines[cell]) for cell in suite.done):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    _current = None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    suite = config.stash.get(SUITE, None)
    if suite is None or not suite.lines:
        return
    from io import StringIO

    from rich.console import Console

    from conformance.report.terminal import matrix_table

    out = StringIO()
    markup = terminalreporter._tw.hasmarkup
    Console(file=out, width=terminalreporter._tw.fullwidth, force_terminal=markup).print(matrix_table(suite.lines))
    terminalreporter.section("compatibility matrix")
    terminalreporter.write(out.getvalue())

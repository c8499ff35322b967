"""The pytest plugin: cells become tests, verdicts become outcomes, and every cell goes into the record."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import backends, environment, expectations, plugins, micrograph
from conformance.baseline import Baseline
from conformance.cell import Cell, select
from conformance.errors import UsageError, first_line
from conformance.crash_markers import Journal
from conformance.record import Writer, texts_folder
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.trace import Observation
from conformance.verdict import Finding, Kind, Verdict
from conformance.workbench import Result, Workbench

PROPERTY = "conformance"
pytest_plugins = ["conformance.fuzz.pytest_plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "PyTorch compiler conformance")
    group.addoption("--backend", action="append", metavar="B", help="a backend (default: all that are installed)")
    group.addoption("--target", action="append", metavar="T", help="cpu, cuda, sm_80, sm_90, sm_100, sm_120 (default: each backend's own)")
    group.addoption("--micrograph", action="append", metavar="GLOB", help="only these micrographs, e.g. 'norm.*'")
    group.addoption(
        "--micrographs", metavar="DIR", default=str(micrograph.HOME), help="where micrographs are (default: fixtures/micrographs)"
    )
    group.addoption("--expectations", metavar="DIR", default=str(expectations.HOME), help="where expectations are")
    group.addoption("--record", metavar="FILE", help="write a line a cell to this file, as each ends")
    group.addoption("--resume", action="store_true", help="go on with the record: cells that are in it are not run again")
    group.addoption("--no-baseline", action="store_true", help="do not hold observations against recorded runs of the same version")
    group.addoption("--cell-timeout", type=float, default=300.0, metavar="SECONDS", help="a micrograph that takes longer is a `timeout`")
    group.addoption("--trtllm-src", metavar="DIR", help="a TensorRT-LLM checkout for AutoDeploy (or TRTLLM_SRC)")


def pytest_configure(config: pytest.Config) -> None:
    for stage in STAGES:
        config.addinivalue_line("markers", f"{stage.marker}: the {stage} stage")
    for name in backends.names():
        config.addinivalue_line("markers", f"{name}: cells of the {name} backend")
    plugins.announce(name for name in config.option.plugins if not name.startswith(("no:", "conformance")))
    if config.option.trtllm_src:
        os.environ["TRTLLM_SRC"] = config.option.trtllm_src


def pytest_cmdline_main(config: pytest.Config) -> None:
    """With -n, a micrograph's cells stay together; a crash costs one micrograph and not the run."""
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadgroup"
    if getattr(config.option, "maxworkerrestart", 0) is None:
        config.option.maxworkerrestart = "1000"


_current: Suite | None = None  # reports come without a config


def pytest_sessionstart(session: pytest.Session) -> None:
    global _current
    try:
        _current = session.config.stash[SUITE] = Suite(session.config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """What a worker is told by the controller."""
    suite = node.config.stash.get(SUITE, None)
    node.workerinput["conformance_done"] = sorted(suite.done) if suite else []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """xdist's own, but it knows the cells of one compile by their name (pytest 9 no longer lets it write groups into names),
    and it is patient: two workers that start anew at the same time are not mixed up."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByCase(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("[")[2].partition("]")[0] or nodeid

        def _reschedule(self, node: Any) -> None:
            if node in self.registered_collections:
                super()._reschedule(node)

    return ByCase(config, log)


# ----------------------------------------------------------------------------------------------- suite


class Suite:
    """What one process of a run knows: the selection, the workbench, the record."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.micrographs = micrograph.load(config.option.micrographs)
        if config.option.micrographs != str(micrograph.HOME) and not self.worker:
            micrograph.must_run(self.micrographs)
        self.backends = self._backends()
        self.targets = [Target.parse(name) for name in config.option.target or []]
        self.chosen = select(self.micrographs, config.option.micrograph or ["*"], "micrograph")
        self.expected = expectations.load(config.option.expectations, environment.versions())
        self.workbench = Workbench(self.expected, None if config.option.no_baseline else Baseline(environment.environment()))
        self.record = Path(config.option.record) if config.option.record else None
        self.texts = texts_folder(self.record) if self.record else None
        self.journal = Journal(self._journal_folder(), config.option.cell_timeout)
        self.lines: dict[str, dict[str, Any]] = {}
        self.wanted: dict[tuple[str, str, str], set[Stage]] = {}
        self.results: dict[tuple[str, str, str], dict[Stage, Result]] = {}
        self.writer: Writer | None = None
        self.done = self._open_record()
        self._no_stale_expectation()

    @property
    def worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    def _backends(self) -> list[str]:
        asked = self.config.option.backend or []
        expression = self.config.option.markexpr or ""
        asked += [name for name in backends.names() if name in re.findall(r"\w+", expression) and name not in asked]
        for name in asked:
            backends.get(name)
        return asked or backends.usual()

    def _journal_folder(self) -> Path:
        if self.record:
            return self.record.with_suffix(".journal")
        if "CONFORMANCE_JOURNAL" not in os.environ:
            os.environ["CONFORMANCE_JOURNAL"] = tempfile.mkdtemp(prefix="conformance-journal-")
        return Path(os.environ["CONFORMANCE_JOURNAL"])

    def _open_record(self) -> set[str]:
        if self.record is None:
            return set()
        if self.worker:  # as the controller saw it at the start: a worker started later must collect the same tests
            return set(self.config.workerinput["conformance_done"])  # type: ignore[attr-defined]
        header = environment.header(
            (self.config.invocation_params.args and list(map(str, self.config.invocation_params.args))) or [], self.expected.digest
        )
        self.writer = Writer(self.record, header, resume=self.config.option.resume)
        self.lines |= self.writer.done
        return set(self.writer.done)

    def _no_stale_expectation(self) -> None:
        if self.worker or not self.expected.entries or self.config.option.micrographs != str(micrograph.HOME):
            return
        universe = [
            f"{stage.value}/{name}/{target}/{m}"
            for name in backends.names()
            for target in backends.get(name).targets()
            for m in self.micrographs
            for stage in STAGES
        ]
        for entry in self.expected.unmatched(universe):
            raise UsageError(f"{entry.source} matches no cell: {entry.cell!r}; mend or remove it")

    def cases(self) -> Iterator[tuple[str, str, str]]:
        """(backend, target, micrograph), as selected."""
        for name in self.backends:
            for target in self.targets or [Target.parse(backends.get(name).default_target)]:
                for m in self.chosen:
                    yield name, target.name, m

    # ------------------------------------------------------------------------------------------ a cell

    def result(self, cell: Cell) -> dict[str, Any]:
        """The recorded form of a cell; its micrograph is examined when it is first asked for."""
        case = (cell.backend, cell.target, cell.micrograph)
        key = "-".join(case)
        if case not in self.results:
            if (died := self.journal.died(key)) is not None:
                return self.died(cell, *died)
            with self.journal.at_work(key):
                self.results[case] = self.workbench.examine(
                    self.micrographs[cell.micrograph],
                    backends.get(cell.backend),
                    Target.parse(cell.target),
                    self.wanted.get(case, set(STAGES)),
                )
                if cell.target == "cuda" and (lost := device_lost()):
                    if not self.worker:
                        pytest.exit(f"{key}: {lost}; what follows needs a new process: run with -n 1", returncode=1)
                    self.journal.abandon(key, lost)
        result = self.results[case].pop(cell.stage)
        return result.to_json(self.texts)

    def died(self, cell: Cell, verdict: Verdict, reason: str) -> dict[str, Any]:
        kind = "timeout" if verdict is Verdict.TIMEOUT else "crash"
        seen = Observation(findings=[Finding(Kind(kind), "LAD001", reason)], verdict=verdict, reason=reason)
        return self.workbench.judged(cell, self.micrographs[cell.micrograph], seen).to_json()

    def add(self, line: dict[str, Any]) -> None:
        self.lines[line["cell"]] = line
        if self.writer:
            self.writer.add(line)


def device_lost() -> str:
    """A fault on the device ends its context for the whole process: whatever comes next would fail, whoever it is."""
    import torch

    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError as error:
        return f"the CUDA context was lost: {first_line(error)}"
    return ""


SUITE = pytest.StashKey[Suite]()


# ------------------------------------------------------------------------------------------ collection


def stage_of(definition: Any) -> Stage | None:
    for stage in STAGES:
        if definition.get_closest_marker(stage.marker):
            return stage
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a `cell` is one test for each case, of the stage that its module is marked with."""
    if "cell" not in metafunc.fixturenames:
        return
    suite, stage = metafunc.config.stash[SUITE], stage_of(metafunc.definition)
    assert stage is not None, f"{metafunc.definition.nodeid} asks for a cell, but is not marked with a stage"
    cells = [Cell(stage, *case) for case in suite.cases()]
    params = [
        pytest.param(cell, id=f"{cell.backend}-{cell.target}-{cell.micrograph}", marks=[getattr(pytest.mark, cell.backend)])
        for cell in cells
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
    gone = [item for item in items if (cell := cell_of(item)) and str(cell) in suite.done]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in set(gone)]
    order = {case: index for index, case in enumerate(suite.cases())}

    def place(item: pytest.Item) -> tuple[int, int]:
        cell = cell_of(item)
        if cell is None:
            return (len(order), 0)
        return (order[(cell.backend, cell.target, cell.micrograph)], cell.stage.order)

    items.sort(key=place)
    for item in items:
        if cell := cell_of(item):
            suite.wanted.setdefault((cell.backend, cell.target, cell.micrograph), set()).add(cell.stage)


# --------------------------------------------------------------------------------------------- running


class CellReport:
    """What a test sees of its cell."""

    def __init__(self, line: dict[str, Any]) -> None:
        self.line = line
        self.verdict = Verdict(line["verdict"])

    def must_hold(self) -> None:
        """Pass, or say why not in the words of the verdict."""
        if self.verdict is Verdict.PASS:
            return
        if self.verdict is Verdict.XFAIL:
            pytest.xfail(self.line["reason"])
        if not self.verdict.unexpected:
            pytest.skip(f"{self.verdict}: {self.line['reason']}")
        pytest.fail(self.explain(), pytrace=False)

    def explain(self) -> str:
        lines = [f"{self.line['cell']}: {self.verdict}: {self.line['reason']}"]
        lines += [f"  {f['check']} {f['kind']}: {f['detail']}" for f in self.line["findings"]]
        return "\n".join([*lines, f"  look closer: conformance show {self.line['cell']}"])


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> CellReport:
    suite: Suite = request.config.stash[SUITE]
    line = suite.result(request.param)
    request.node.user_properties.append((PROPERTY, json.dumps(line, default=str)))
    return CellReport(line)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if _current is None or _current.worker:
        return
    for name, value in report.user_properties:
        if name == PROPERTY:
            _current.add(json.loads(str(value)))
            return
    if report.failed and report.when not in ("call", "teardown", "setup"):
        _record_crash(report)


def _record_crash(report: pytest.TestReport) -> None:
    """xdist's own report of a worker that died: it knows only the test."""
    assert _current is not None
    stage = next((s for s in STAGES if f"test_{s.value}" in report.nodeid), None)
    case = report.nodeid.partition("[")[2].partition("]")[0]
    known = {"-".join(c): c for c in _current.cases()}
    if stage and case in known:
        cell = Cell(stage, *known[case])
        _current.add(_current.died(cell, *_current.journal.gone(case)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    global _current
    suite = session.config.stash.get(SUITE, None)
    if suite is None:
        return
    if not suite.worker:
        suite.journal.close()
        if suite.writer:
            suite.writer.close()
    _current = None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    suite = config.stash.get(SUITE, None)
    if suite is None or not suite.lines:
        return
    from io import StringIO

    from rich.console import Console

    from conformance.report.terminal import matrix_table

    out = StringIO()
    Console(file=out, width=terminalreporter._tw.fullwidth, force_terminal=terminalreporter._tw.hasmarkup).print(matrix_table(suite.lines))
    terminalreporter.section("compatibility matrix")
    terminalreporter.write(out.getvalue())

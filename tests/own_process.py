"""A pytest plugin: each test marked `own_process` runs in a process forked from one that has run no test.

Tests that fork, patch a compiler or compile meet what earlier tests left in the process: started threads (a process that
has run a backward pass cannot be forked and run another), filled caches, log levels. With xdist the tests that a process
has run before differ from run to run.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

MARK = "own_process"
_servers: dict[int, tuple[int, Connection]] = {}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}: runs in a process forked from one that has run no test")


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly or not any(item.get_closest_marker(MARK) for item in session.items):
        return
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _serve(session, theirs)
    theirs.close()
    _servers[id(session)] = pid, ours


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = _servers.pop(id(session), None)
    if found is not None:
        pid, connection = found
        with contextlib.suppress(OSError):
            connection.send(None)  # to close it is not enough: a process that a test left behind may hold a copy
        connection.close()
        os.waitpid(pid, 0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    found = _servers.get(id(item.session))
    if found is None or item.get_closest_marker(MARK) is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item, found[1]):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    item.session._setupstate.teardown_exact(nextitem)  # what the test before this one left set up for this one's folder
    return True


def _reports(item: pytest.Item, server: Connection) -> list[Any]:
    server.send(item.session.items.index(item))
    child = server.recv()
    try:
        said = server.recv()
    except pytest.fail.Exception as late:  # pytest-timeout raises it here
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        server.recv()
        said = str(late)
    if isinstance(said, str):
        return [
            pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call", duration=0.0, start=0.0, stop=0.0)
        ]
    return [item.config.hook.pytest_report_from_serializable(config=item.config, data=data) for data in said]


def _serve(session: pytest.Session, asked: Connection) -> NoReturn:
    """Fork a process for each test that is asked for; say its number, then its reports or how it died."""
    ready = False
    while True:
        try:
            index = asked.recv()
        except EOFError:
            index = None
        if index is None:
            os._exit(0)
        if not ready:
            _load()
            ready = True
        ours, theirs = Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            asked.close()
            ours.close()
            _run(session.items[index], theirs)
        theirs.close()
        asked.send(child)
        try:
            said = ours.recv()
        except (EOFError, pickle.UnpicklingError):
            said = None
        ours.close()
        _, status = os.waitpid(child, 0)
        asked.send(
            said if said is not None else f"the process of this test ended with {os.waitstatus_to_exitcode(status)}"
        )


def _load() -> None:
    """What a first compile imports: once for all tests."""
    from conformance import backends
    from conformance.target import Target

    backends.get("inductor").preload(Target("cpu"))


def _run(item: pytest.Item, say: Connection) -> NoReturn:
    code = 1
    try:
        reports = runtestprotocol(item, nextitem=None, log=False)
        hook = item.config.hook
        say.send([hook.pytest_report_to_serializable(config=item.config, report=one) for one in reports])
        code = 0
    finally:
        os._exit(code)

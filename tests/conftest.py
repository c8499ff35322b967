"""Shared by all tests of the engine."""

from __future__ import annotations

import pytest
import torch

from tests.own_process import (  # noqa: F401 - hooks
    pytest_collection_finish,
    pytest_configure,
    pytest_runtest_protocol,
    pytest_sessionfinish,
)

# Tests fork processes, and a process that has started OpenMP's threads cannot be forked: its children would wait for threads that they
# do not have. Processes that compile set their own number.
torch.set_num_threads(1)

# Files that take minutes, the longest first: with `--dist loadfile` a file belongs to one worker, and one that began last would keep it
# busy alone. xdist's own order (`--loadscope-reorder`) counts tests, not seconds.
LONG = (
    "triage/test_script.py",
    "chaos/test_chaos.py",
    "engine/test_processes.py",
    "fuzz/test_session.py",
    "fuzz/test_planted.py",
    "engine/test_seam.py",
    "upstream/test_runner.py",
    "headless/test_multi_target.py",
    "engine/test_cli.py",
    "report/test_report_views.py",
    "triage/test_repro.py",
    "hostile/test_hostile_pages.py",
    "headless/test_seam.py",
    "upstream/test_command.py",
    "passes/test_near_miss.py",
    "fuzz/test_grammars.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(LONG)))

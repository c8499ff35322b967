"""Shared by all tests of the engine."""

from __future__ import annotations

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

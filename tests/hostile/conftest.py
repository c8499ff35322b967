"""A time limit that works on a process that waits, and a browser."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import chromium, phone, tab  # noqa: F401

SECONDS = 300


@pytest.fixture(autouse=True)
def no_hang(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test here ends within five minutes (browser tests have the browser's own limits), or it has found a hang."""
    if "chromium" in request.fixturenames:
        yield
        return

    def ring(*_: Any) -> None:
        raise TimeoutError(f"no end after {SECONDS} s: a hang")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)

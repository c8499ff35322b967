from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from conformance import headless
from conformance.headless.kernel import Kernel
from conformance.headless.program import Program
from conformance.stage import STAGES
from conformance.target import Target


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = headless.unavailable(Target("sm_90"))
    if len(reasons) == len(STAGES):
        for item in items:
            if "headless" in str(item.path):
                item.add_marker(pytest.mark.skip(reason=reasons[STAGES[0]]))


@pytest.fixture
def rewrite_kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """As if the code generator had written it otherwise: every kernel's source, with the pattern replaced."""

    def rewrite(pattern: str, by: str) -> None:
        original = Program._kernel

        def wrong(self: Program, name: str, source: str) -> Kernel:
            changed = re.sub(pattern, by, source)
            assert changed != source, source
            return original(self, name, changed)

        monkeypatch.setattr(Program, "_kernel", wrong)

    return rewrite

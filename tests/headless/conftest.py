from __future__ import annotations

import pytest

from conformance import headless
from conformance.target import Target


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if reason := headless.unavailable(Target("sm_90")):
        for item in items:
            if "headless" in str(item.path):
                item.add_marker(pytest.mark.skip(reason=reason))

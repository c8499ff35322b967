from __future__ import annotations

import pytest

from conformance import headless
from conformance.stage import STAGES
from conformance.target import Target


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = headless.unavailable(Target("sm_90"))
    if len(reasons) == len(STAGES):
        for item in items:
            if "headless" in str(item.path):
                item.add_marker(pytest.mark.skip(reason=reasons[STAGES[0]]))

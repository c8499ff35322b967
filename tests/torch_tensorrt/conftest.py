"""Tests of the Torch-TensorRT backend. Those with the mark `library` need it installed, and no GPU."""

from __future__ import annotations

import pytest

from conformance.backends.torch_tensorrt.installed import installed, missing


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "library: needs torch_tensorrt (for CUDA) to be installed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = missing(installed())
    for item in items:
        if why and item.get_closest_marker("library"):
            item.add_marker(pytest.mark.skip(reason=why))

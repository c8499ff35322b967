"""Plugins that patch a compiler before it is used: seeded faults, or anybody's own. They must be seen in every process."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from typing import Any

from conformance.errors import UsageError, first_line

VARIABLE = "CONFORMANCE_PLUGINS"


def named() -> list[str]:
    """The plugins of this run."""
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name]


def announce(names: Iterable[str]) -> None:
    """Every process started from here on loads these."""
    known = named()
    os.environ[VARIABLE] = ",".join([*known, *(name for name in names if name not in known)])


def load_plugins() -> None:
    """Load the announced plugins the way pytest would: import them, then let them configure."""
    for name in named():
        try:
            module = importlib.import_module(name)
        except Exception as error:
            raise UsageError(f"plugin {name!r} does not import: {first_line(error)}") from None
        _configure(module)


def _configure(module: Any) -> None:
    hook = getattr(module, "pytest_configure", None)
    if hook is None:
        return
    from _pytest.config import get_config

    hook(get_config()) if hook.__code__.co_argcount else hook()

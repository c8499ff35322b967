"""Plugins that patch a compiler before it is used: seeded faults, or anybody's own. Loaded once, before any process is forked."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable

from conformance.errors import UsageError, first_line

VARIABLE = "CONFORMANCE_PLUGINS"


def named() -> list[str]:
    """The plugins of this run."""
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name]


def announce(names: Iterable[str]) -> None:
    """Every interpreter started from here on loads these, too."""
    known = named()
    os.environ[VARIABLE] = ",".join([*known, *(name for name in names if name not in known)])


def load_plugins(names: Iterable[str] | None = None) -> None:
    """Load plugins (without names, the announced ones) as pytest does: import them, let them add options, then configure and start a
    session with them."""
    names = named() if names is None else list(names)
    if not names:
        return
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        _importable(name)
    import pytest
    from _pytest.config import _prepareconfig

    arguments = [word for name in names for word in ("-p", name)]
    try:
        config = _prepareconfig(
            [*arguments, "-c", os.devnull, "-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:conformance"]
        )
        config._do_configure()
        session = pytest.Session.from_config(config)
        for name in names:
            module = sys.modules[name]
            hook = getattr(module, "pytest_sessionstart", None)
            if hook is not None:
                hook(session) if hook.__code__.co_argcount else hook()
    except Exception as error:
        raise UsageError(f"plugin {', '.join(names)} does not load: {first_line(error)}") from None
    announce(names)


def _importable(name: str) -> None:
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise UsageError(f"no plugin {name!r}: it must be a module that can be imported from here")

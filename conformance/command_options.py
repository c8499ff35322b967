"""Options that several commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def micrograph_globs(help: str, *default: str) -> Callable[[Any], Any]:
    """`-m GLOB`, as often as wanted, as the parameter `globs`."""
    return click.option("-m", "--micrograph", "globs", default=default, multiple=True, metavar="GLOB", help=help)

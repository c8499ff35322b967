"""Autotuning without a device: what Inductor could choose is listed, and a fixed choice is made. Nothing is timed.

`FIRST` is what Inductor lists first: the library call, where there is one. `TEMPLATE` is the Triton template with the
largest tile, which shows what `max_autotune` could generate; which template the GPU would find fastest only the GPU can
say.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from conformance.backends.inductor.seam import seam as inductor

SETTINGS = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "ATEN,TRITON"}
Pick = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Choice:
    """One place where Inductor had alternatives."""

    operation: str
    taken: str
    alternatives: tuple[str, ...]


def FIRST(choices: list[Any]) -> Any:
    return choices[0]


def TEMPLATE(choices: list[Any]) -> Any:
    templates = [choice for choice in choices if "Triton" in type(choice).__name__]
    return max(templates, key=_tile, default=choices[0])


def _tile(choice: Any) -> tuple[int, int]:
    """How large a tile one program computes, then with how many warps; the first of the largest is taken."""
    numbers = {name: int(value) for name, value in re.findall(r"(BLOCK_M|BLOCK_N|num_warps)=(\d+)", described(choice))}
    return numbers.get("BLOCK_M", 0) * numbers.get("BLOCK_N", 0), numbers.get("num_warps", 0)


@contextlib.contextmanager
def fixed(pick: Pick = FIRST, made: list[Choice] | None = None) -> Iterator[None]:
    """Every choice is made by `pick`, and written down."""

    def select(
        proceed: Callable[..., Any],
        self: Any,
        name: Any,
        choices: list[Any],
        input_nodes: Any,
        layout: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if len(choices) > 1:
            taken = pick(choices)
            if made is not None:
                made.append(Choice(str(name), described(taken), tuple(described(choice) for choice in choices)))
            choices = [taken]
        return proceed(self, name, choices, input_nodes, layout, *args, **kwargs)

    with contextlib.ExitStack() as stack:
        stack.enter_context(inductor.subscribe(select_algorithm=select))
        if pick is not FIRST:
            stack.enter_context(inductor.config.patch(SETTINGS))
        yield


def described(choice: Any) -> str:
    """`mm` for a library call; a template with its blocks."""
    name = str(getattr(choice, "name", type(choice).__name__))
    details = str(getattr(choice, "description", "") or "")
    return f"{name}: {details}" if details else name

"""The rungs that each compiler has in a sweep of operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from conformance.errors import UsageError
from conformance.ops.rung import Compiled, Decomposed, Rung
from conformance.target import Target


@dataclass(frozen=True)
class Ladder:
    """rungs: in order. check: what a finding of an earlier rung is confirmed with. eager: the module as the target runs it uncompiled,
    where that is not to call it."""

    target: str
    rungs: tuple[Rung, ...]
    check: Rung | None = None
    eager: Callable[[nn.Module], Callable[..., Any]] | None = None


def inductor(target: str | None) -> Ladder:
    parsed = Target.parse(target or "cpu")
    if parsed.headless:
        from conformance.ops.described import Described

        described = Described(parsed)
        return Ladder(parsed.name, (described,), eager=described.eager)
    if parsed.name != "cpu":
        raise UsageError(f"operators are swept through inductor for cpu and described GPUs (sm_90), not for {parsed}")
    whole = Compiled()
    return Ladder("cpu", (Decomposed(), whole), whole)


def torch_tensorrt(target: str | None) -> Ladder:
    from conformance.ops.engine import Engines, start_tensorrt

    parsed = Target.parse(target or "sm_90")
    if not parsed.headless:
        raise UsageError(f"operators are swept through torch_tensorrt for described GPUs (sm_90), not for {parsed}")
    start_tensorrt()
    return Ladder(parsed.name, (Engines(parsed),))


LADDERS: dict[str, Callable[[str | None], Ladder]] = {"inductor": inductor, "torch_tensorrt": torch_tensorrt}

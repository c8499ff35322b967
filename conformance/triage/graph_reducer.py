"""Shrink a failing graph while the same finding, by stage and kind, remains.

The graph is the captured one, and every value inside it is known from eager, so that any part of it can be tried on its
own with the values it really gets. First the nodes that the culprit names, alone; where it names many, those that a
probe finds wrong; else by delta debugging. Then sizes, then dtypes and constants. Each try is one compile.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from conformance import oracle
from conformance.reduce import ddmin, one_by_one
from conformance.torch_seam import pytree
from conformance.triage.graph_comparison import node_values
from conformance.triage.graph_probe import Compiled, Probe, differs, distinct
from conformance.triage.plain_values import (
    Place,
    all_shortened,
    is_finite,
    odd_constants,
    plain_dtype,
    plain_numbers,
    same_sizes,
    shortened,
    with_constants,
)
from conformance.triage.subgraph import CALLS, called, cut, word

PLAINER, PLAINER_DEAR = 12, 6  # tries at plainer dtypes and constants; and where a try is a C++ compiler's run


@dataclass
class Reduced:
    """The smallest graph that was found, and how it was found."""

    gm: fx.GraphModule
    inputs: tuple[Any, ...]
    nodes: int
    before: int
    tries: int = 0
    seconds: float = 0.0
    history: list[str] = field(default_factory=list)


class Reducer:
    """`holds` says of a smaller graph whether the same finding remains; `sure`, of the smallest, whether it really is the same,
    where `holds` is a cheaper question; `probe` runs a graph through the compiler, with or without fusing. Sizes are cut to `small`."""

    def __init__(
        self,
        gm: fx.GraphModule,
        inputs: tuple[Any, ...],
        holds: Callable[[fx.GraphModule, tuple[Any, ...]], bool],
        limit: float = 180.0,
        probe: Compiled | None = None,
        sure: Callable[[fx.GraphModule, tuple[Any, ...]], bool] | None = None,
        small: int = 5,
    ) -> None:
        self.gm, self.inputs, self.holds, self.sure, self.small = gm, inputs, holds, sure, small
        self.until = time.monotonic() + limit
        self.values = node_values(gm, inputs)
        self.calls = [node for node in gm.graph.nodes if node.op in CALLS]
        self.best = Reduced(gm, inputs, len(self.calls), len(self.calls))
        self.probe = None if probe is None else Probe(gm, self.calls, self.values, probe, self._record)
        self.slipped = False  # the cheap question led to another finding than the one that was asked for

    def run(self, suspects: Sequence[str] = ()) -> Reduced:
        start = time.monotonic()
        self._search(suspects)
        if not self._plainer() and self.sure is not None and not self.sure(self.best.gm, self.best.inputs):
            self.slipped = True
            self._start_over()
            self._search(suspects)
            self._plainer()
        self.best.seconds = time.monotonic() - start
        return self.best

    def _record(self, line: str) -> None:
        self.best.tries += 1
        self.best.history += [line] if line else []

    def _search(self, suspects: Sequence[str]) -> None:
        self._minimal(self._suspected(suspects) or self.calls)
        self._smaller_sizes()

    def _start_over(self) -> None:
        """The cheap question led to another finding: ask the dear one all the way."""
        assert self.sure is not None
        holds, sure = self.holds, self.sure
        self.holds, self.sure = (lambda gm, inputs: holds(gm, inputs) and sure(gm, inputs)), None
        tries = self.best.tries
        self.best = Reduced(self.gm, self.inputs, len(self.calls), len(self.calls), tries)

    def _try(self, nodes: Sequence[fx.Node], why: str, short: bool = False) -> bool:
        if time.monotonic() > self.until:
            return False
        made = cut(self.gm, nodes, self.values)
        if made is None:
            return False
        gm, inputs = made
        if short:
            inputs = all_shortened(inputs, self.small)
            if same_sizes(inputs, made[1]) or not runs(gm, inputs):
                return False
        self.best.tries += 1
        if not self.holds(gm, inputs):
            return False
        self.best.history.append(f"{why}: {len(nodes)} nodes")
        self.best.gm, self.best.inputs, self.best.nodes = gm, inputs, len(nodes)
        return True

    def _suspected(self, suspects: Sequence[str]) -> list[fx.Node] | None:
        """What the culprit names, each alone. Where that is many ops (a kernel's), those that a probe finds wrong."""
        words = [word(name) for name in suspects]
        named = [
            n for n in distinct(self.calls, self.values) if any(w and (w in called(n) or called(n) in w) for w in words)
        ]
        groups = [[node] for node in named[:3]]
        if self.probe is not None and (self.probe.asked or len(named) != 1):
            groups = [[node] for node in self.probe.wrong_alone()[:3]] or self.probe.wrong_together()[:3] or groups
        for group in groups:
            why = "a suspect alone" if len(group) == 1 else "suspects together"
            if self._try(group, f"{why}, small", short=True) or self._try(group, why):
                return group
        return None

    def _minimal(self, nodes: list[fx.Node]) -> None:
        """Leave out what is not needed. Of a group that the probe found, it has looked at each node alone."""
        if self.probe is None or not self.probe.was_together(nodes):
            ddmin(nodes, one_by_one(lambda part: self._try(part, "a part")))

    def _smaller_sizes(self) -> None:
        """Cut every size that a dim of the inputs has, as long as the graph still runs and still fails: all at once, or, where
        a try costs little, one by one."""
        smaller = all_shortened(self.best.inputs, self.small)
        if same_sizes(smaller, self.best.inputs) or self._smaller(smaller, f"sizes → {self.small}") or self.small > 5:
            return
        for length in sorted(
            {n for x in self.best.inputs if isinstance(x, torch.Tensor) for n in x.shape if n > 8}, reverse=True
        )[:2]:
            for shorter in (self.small, length // 2):
                if self._smaller(
                    tuple(shortened(x, length, shorter) for x in self.best.inputs), f"size {length} → {shorter}"
                ):
                    break

    def _smaller(self, inputs: tuple[Any, ...], why: str) -> bool:
        if time.monotonic() > self.until or not runs(self.best.gm, inputs):
            return False
        return self._accepted(self.best.gm, inputs, why)

    def _accepted(self, gm: fx.GraphModule, inputs: tuple[Any, ...], why: str) -> bool:
        self.best.tries += 1
        if not self.holds(gm, inputs):
            return False
        self.best.gm, self.best.inputs = gm, inputs
        self.best.history.append(why)
        return True

    # ----------------------------------------------------------------------------------------- plainer

    def _plainer(self) -> bool:
        """Plain dtypes and constants, where they do not matter. True: some are, and the finding is certainly the same; else
        all is as it was, and nothing is said of it."""
        gm, inputs, said = self.best.gm, self.best.inputs, len(self.best.history)
        last = self.best.tries + (PLAINER_DEAR if self.small > 5 else PLAINER)
        for _ in (
            itertools.chain(self._plainer_dtypes(), self._plainer_constants()) if time.monotonic() < self.until else ()
        ):
            if self.best.tries >= last or time.monotonic() > self.until:
                break
        if len(self.best.history) == said:
            return False
        if self._same_finding():
            return True
        self.best.gm, self.best.inputs = gm, inputs
        del self.best.history[said:]
        return False

    def _same_finding(self) -> bool:
        """Where the dear question is not asked since the probe has answered it, the probe is asked again of this graph: with other
        numbers it may be another stage's."""
        gm, inputs = self.best.gm, self.best.inputs
        if self.sure is not None:
            return self.sure(gm, inputs)
        if self.probe is None or not self.probe.answered:
            return True
        want = oracle.run(gm, oracle.clone_inputs(inputs)).outputs
        try:
            got = pytree.tree_leaves(self.probe.compiled(gm, inputs, False))
        except Exception:
            return False
        return any(map(differs, got, want)) == bool(self.probe.wrong_alone())

    def _plainer_dtypes(self) -> Iterator[None]:
        """One step is one try: all inputs at once, then each."""
        odd = [number for number, x in enumerate(self.best.inputs) if plain_dtype(x) is not None]
        for some in ([odd] if len(odd) > 1 else []) + [[number] for number in odd]:
            inputs = tuple(x.to(plain_dtype(x)) if n in some else x for n, x in enumerate(self.best.inputs))
            if not self._as_sound(self.best.gm, inputs):
                continue
            why = ", ".join(f"input {n}: {self.best.inputs[n].dtype} → {inputs[n].dtype}" for n in some)
            done = self._accepted(self.best.gm, inputs, why)
            yield
            if done and some == odd:
                return

    def _plainer_constants(self) -> Iterator[None]:
        """One step is one try: all constants at once, then each, the plainest number first."""
        odd = odd_constants(self.best.gm)
        plain = {place: plain_numbers(value) for place, value in odd.items()}
        rounds = [{place: numbers[0] for place, numbers in plain.items()}] if len(odd) > 1 else []
        ranks = range(max(map(len, plain.values()), default=0))
        rounds += [{place: numbers[rank]} for rank in ranks for place, numbers in plain.items() if rank < len(numbers)]
        settled: set[Place] = set()
        for changes in rounds:
            gm = with_constants(self.best.gm, changes)
            if settled & {*changes} or not self._as_sound(gm, self.best.inputs):
                continue
            if self._accepted(gm, self.best.inputs, ", ".join(f"{odd[place]} → {to}" for place, to in changes.items())):
                settled |= {*changes}
            yield

    def _as_sound(self, gm: fx.GraphModule, inputs: tuple[Any, ...]) -> bool:
        """It runs, gives the same shapes, and nothing that is not finite unless there was before: else one defect is easily left
        for another, that of zero divided by zero."""
        now = oracle.run(gm, oracle.clone_inputs(inputs))
        was = oracle.run(self.best.gm, oracle.clone_inputs(self.best.inputs))
        if now.error is not None or now.strides != was.strides:
            return False
        pairs = [(new, old) for new, old in zip(now.outputs, was.outputs, strict=True) if isinstance(old, torch.Tensor)]
        return all(new.shape == old.shape and (is_finite(new) or not is_finite(old)) for new, old in pairs)


def runs(gm: fx.GraphModule, inputs: tuple[Any, ...]) -> bool:
    """Does eager take these inputs?"""
    return oracle.run(gm, oracle.clone_inputs(inputs)).error is None

"""What a caller does with a program that replays a recording, each call held against eager with the values that it was given.

Every call has values of its own; inputs stay at their addresses and are written to between two calls; outputs are kept while further
calls run; an output is the next call's input. All three compilers' recordings are called in these ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Case
from conformance.inputs import Tensor
from conformance.oracle.reference import Reference

REPLAYS = 20  # calls with values of their own
IN_A_ROW = 3  # calls of which the earlier outputs are kept, or given to the next one

Found = tuple[str, oracle.Difference]  # in which call, and what


@dataclass
class Replays:
    """A program whose calls are replays.

    call              the program
    module            whose parameters and buffers it reads and writes
    reference         what eager gives for inputs
    next_call         one more call of the same step, where the compiler knows steps: what was given before must last
    outputs_persist   False where the compiler documents that the next call writes into the same memory
    """

    call: Callable[..., Any]
    case: Case
    module: Any
    reference: Callable[[tuple[Any, ...]], Reference]
    next_call: Callable[..., Any] | None = None
    outputs_persist: bool = True

    def run(self, inputs: tuple[Any, ...], call: Callable[..., Any] | None = None) -> oracle.Outcome:
        return oracle.run(call or self.call, inputs, self.module, calls=self.case.micrograph.steps)

    # ----------------------------------------------------------------------------------------- what a caller does

    def new_values(self, seeds: Iterable[int] = range(REPLAYS)) -> Iterator[Found]:
        for call, seed in enumerate(seeds, 1):
            inputs = self.case.inputs(seed)
            ref = self.reference(inputs)
            yield from _named(f"replay {call}", oracle.compare(self.run(inputs), ref))

    def written_between(self) -> Iterator[Found]:
        """The same tensors at every call, written to in between: a recording must read them, and not what it once copied."""
        held = self.case.inputs(0)
        for call in range(IN_A_ROW):
            fill(held, self.case.inputs(call))
            ref = self.reference(held)
            yield from _named(f"inputs written before replay {call + 1}", oracle.compare(self.run(held), ref))

    def kept(self) -> Iterator[Found]:
        """Outputs of earlier calls, after later ones."""
        if not self.outputs_persist:
            return
        outcomes = [self.run(self.case.inputs(seed)) for seed in range(IN_A_ROW)]
        for call, outcome in enumerate(outcomes[:-1], 1):
            if outcome.error is None:
                lost = [d for d in oracle.survived(outcome) if not _belongs_to_caller(outcome, d)]
                yield from _named(f"kept from replay {call}", lost)

    def fed_back(self) -> Iterator[Found]:
        """An output is the input of the next call, as a decoding loop does it."""
        inputs = self.case.inputs(0)
        if any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
            return
        lasts = self.outputs_persist or self.next_call is not None
        if not lasts and self.case.micrograph.steps > 1:
            return  # its first call writes over the output that its second one would read
        outcome = self.run(oracle.clone_inputs(inputs))
        pair = self._fits(outcome, inputs)
        if outcome.error is not None or pair is None:
            return
        output, place = pair
        for call in range(IN_A_ROW):
            given = list(inputs)
            given[place] = outcome.live[output]
            if not given[place].isfinite().all():
                return
            ref = self.reference(tuple(given))
            outcome = self.run(tuple(given), self.next_call)
            found = oracle.compare(*_outputs_alone(outcome, ref), aliases=False)
            yield from _named(f"output {output} given as input {place}, replay {call + 1}", found)
            if outcome.error is not None:
                return

    def _fits(self, outcome: oracle.Outcome, inputs: tuple[Any, ...]) -> tuple[int, int] | None:
        """The first output that could stand for an input which the call only reads, which shares memory with nothing, and which takes any
        number: an output may be no probability."""
        written = oracle.mutated(outcome, inputs) if outcome.error is None else []
        takes = [
            isinstance(spec, Tensor) and spec.fill == "normal" and not spec.values
            for spec in self.case.micrograph.inputs
        ]
        for output, value in enumerate(outcome.live):
            if not isinstance(value, torch.Tensor) or not value.is_floating_point() or outcome.shares[output]:
                continue
            for place, wanted in enumerate(inputs):
                if place in written or not takes[place]:
                    continue
                same = (value.shape, value.dtype, value.stride()) == (wanted.shape, wanted.dtype, wanted.stride())
                alone = wanted.untyped_storage().nbytes() == wanted.numel() * wanted.element_size()
                if same and alone:
                    return output, place
        return None

    def habits(self, new_values: bool = False) -> Iterator[Found]:
        """One after the other, until one finds something. `new_values`: these calls, too, which an examination makes itself."""
        habits: list[Callable[[], Iterator[Found]]] = [self.written_between, self.kept, self.fed_back]
        if new_values:
            habits.insert(1, self.new_values)
        for habit in habits:
            wrong = False
            for found in habit():
                wrong = True
                yield found
            if wrong:
                return


def fill(held: tuple[Any, ...], values: tuple[Any, ...]) -> None:
    """Write values into tensors that stay where they are. Many elements in one place cannot be written; they keep theirs."""
    with torch.no_grad():
        for tensor, value in zip(held, values, strict=True):
            if isinstance(tensor, torch.Tensor):
                tensor.grad = None  # of the call before
                if 0 not in tensor.stride():
                    tensor.copy_(value)


def _named(when: str, differences: Iterable[oracle.Difference]) -> Iterator[Found]:
    for difference in differences:
        yield when, difference


def _belongs_to_caller(outcome: oracle.Outcome, difference: oracle.Difference) -> bool:
    """An output that shares its memory with an input or with the module's state changes with that."""
    return outcome.shares[int(difference.where.split()[1])].startswith(("input", "state"))


def _outputs_alone(outcome: oracle.Outcome, ref: Reference) -> tuple[oracle.Outcome, Reference]:
    """Without the inputs after the call: where outputs are the program's own memory, the fed-back one is overwritten."""
    return replace(outcome, inputs={}), Reference(replace(ref.eager, inputs={}), ref.exact)

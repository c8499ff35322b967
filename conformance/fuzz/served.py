"""A runner for backends that compile at the first call and guard the rest: one compiled program serves many calls."""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Backend, Case, Jit
from conformance.backends.inductor.seam import seam
from conformance.errors import UsageError
from conformance.fuzz.coverage import Tally, counted
from conformance.fuzz.example import Call, Example
from conformance.fuzz.graph import Graph
from conformance.fuzz.judge import judged
from conformance.fuzz.known import Register
from conformance.fuzz.rejection import Refused, Rejected, reference, refused
from conformance.fuzz.runner import Runner
from conformance.fuzz.strategies import Form, example_of, plain, trigger
from conformance.micrograph import Micrograph
from conformance.target import Target


class Entry:
    """A program that serves one form."""

    def __init__(self, runner: Served, first: Call, dynamic: tuple[str, ...], unbacked: tuple[str, ...] = ()) -> None:
        self.dynamic, self.unbacked = dynamic, unbacked
        example = Example(runner.micrograph.name(), (first,), dynamic, mutates=(), unbacked=unbacked)
        self.case = Case(example.as_micrograph(runner.micrograph), runner.target)
        self.reference, self.module = self.case.module(), self.case.module()
        self.fn = runner.compile_entry(own_code(self.module))
        self.history: list[Call] = []


class Served(Runner):
    """For a backend that is a `Jit`: it compiles at the first call and guards the rest."""

    most = 24  # programs kept

    def __init__(
        self, backend: Any, target: Target, micrograph: type[Micrograph], tally: Tally, graph: Graph | None = None
    ) -> None:
        super().__init__(backend, target, micrograph, tally, graph)
        self.entries: OrderedDict[Form, Entry] = OrderedDict()
        self.dynamic: tuple[str, ...] | None = None
        self.refusals: Counter[Form] = Counter()
        self.fixed: defaultdict[Form, set[int]] = defaultdict(set)  # sizes at which the graph fixes a dim
        self.captures: dict[tuple[str, ...], bool] = {}  # dims → can they be unbacked?
        self.stack = ExitStack()
        self.stack.enter_context(settings(backend, Case(micrograph, target)))
        self.stack.enter_context(counted(tally))

    def compile_entry(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        assert isinstance(self.backend, Jit)
        return self.backend.compile_entry(fn)

    def example(self, form: Form, call: Call) -> Example:
        return example_of(self.micrograph, form, call, self._markable(), self.graph)

    def run(self, form: Form, call: Call) -> list[oracle.Difference]:
        if self.refusals[form] > 6:
            raise Rejected("the graph fixes what this form marks dynamic")
        try:
            return self._found(form, call)
        except Refused as refusal:
            self.refusals[form] += 1  # each costs a capture
            self.fixed[form] |= refusal.sizes
            raise

    def static(self) -> tuple[str, ...]:
        return tuple(dim for dim in self.micrograph.dims if dim not in self._markable())

    def avoids(self, form: Form, call: Call) -> bool:
        return (form.dynamic and bool(self.fixed[form] & {*call.dims.values()})) or super().avoids(form, call)

    def _found(self, form: Form, call: Call) -> list[oracle.Difference]:
        self.asked(call)
        if not form.dynamic:  # compiled for these very sizes
            entry = self._static(form, call)
            ref = reference(entry.reference, self.inputs(call), entry.case)
            found = self.call(entry, call, ref)
        else:
            ref = None
            if form not in self.entries:  # a program is worth compiling only for what eager takes
                case = Case(Example("", (call,), mutates=()).as_micrograph(self.micrograph), self.target)
                ref = reference(case.module(), self.inputs(call), case)
            entry = self.entry(form)
            ref = ref or reference(entry.reference, self.inputs(call), entry.case)
            found = self.call(entry, call, ref)
        self.tally.examples += 1
        self.history = entry.history
        return found

    def inputs(self, call: Call) -> tuple[Any, ...]:
        try:
            return call.inputs(self.micrograph, device="cuda" if self.target.name == "cuda" else "cpu")
        except UsageError as error:
            raise Rejected(str(error)) from None

    def call(self, entry: Entry, call: Call, ref: oracle.Reference) -> list[oracle.Difference]:
        marked = self.backend.marked  # type: ignore[attr-defined]
        entry.history.append(call)
        fn = lambda *x: entry.fn(*marked(entry.case, x))
        outcome = oracle.run(fn, self.inputs(call), entry.module, calls=self.micrograph.steps)
        if refused(outcome.error, bool(entry.unbacked)):
            raise Refused(outcome.error)
        # Which strides an elementwise op gives depends on comparing sizes, which cannot be done where they may not be looked at.
        again = lambda inputs: oracle.run(entry.reference, inputs, entry.reference, calls=self.micrograph.steps)
        return judged(outcome, ref, self.inputs(call), not entry.unbacked, again, self.ops)

    def _static(self, form: Form, call: Call) -> Entry:
        """Shrinking asks for the same sizes again and again."""
        sized = replace(form, strata=tuple(call.dims.items()))
        if sized not in self.entries:
            self._make_room()
            self.entries[sized] = Entry(self, call, ())
        return self.entries[sized]

    def _make_room(self) -> None:
        if len(self.entries) >= self.most:
            self.entries.popitem(last=False)

    def entry(self, form: Form) -> Entry:
        """The program of a form, compiled by the form's own first call."""
        if form not in self.entries:
            self._make_room()
            self.entries[form] = self._compiled(form)
        return self.entries[form]

    def _compiled(self, form: Form) -> Entry:
        first = trigger(self.micrograph, form)
        if form.unbacked and not self._unbackable(form.unbacked):
            raise Rejected("the graph must know the size of a dim that is unbacked")
        entry = Entry(self, first, self._markable(), form.unbacked)
        try:
            self.asked(first)
            self.call(entry, first, reference(entry.reference, self.inputs(first), entry.case))
        except Rejected:
            entry.history.clear()  # eager does not take it at these sizes: the next call compiles
        return entry

    def replay(self, history: list[Call], dynamic: tuple[str, ...], unbacked: tuple[str, ...] = ()) -> int | None:
        """The first call of a sequence that goes wrong on a program of its own; None when all are right."""
        known = self.micrograph.dims
        entry = Entry(
            self, history[0], tuple(d for d in dynamic if d in known), tuple(d for d in unbacked if d in known)
        )
        for index, call in enumerate(history):
            self.last = self.call(entry, call, reference(entry.reference, self.inputs(call), entry.case))
            if self.last:
                return index
        return None

    last: Sequence[oracle.Difference] = ()  # what went wrong in the last replay

    def _markable(self) -> tuple[str, ...]:
        """The dims that can be symbolic: a mark on one that the graph fixes is the user's error, not the compiler's."""
        if self.dynamic is None:
            dims = tuple(self.micrograph.dims)
            self.dynamic = dims if self._captures(dims) else tuple(dim for dim in dims if self._captures((dim,)))
            if len(self.dynamic) > 1 and self.dynamic != dims and not self._captures(self.dynamic):
                self.dynamic = ()
        return self.dynamic

    def _unbackable(self, dims: tuple[str, ...]) -> bool:
        if dims not in self.captures:
            self.captures[dims] = self._captures((), dims)
        return self.captures[dims]

    def _captures(self, dims: tuple[str, ...], unbacked: tuple[str, ...] = ()) -> bool:
        form = Form(0, tuple((d, 2) for d in self.micrograph.dims), plain(self.micrograph).given)
        example = Example("", (trigger(self.micrograph, form),), dims, mutates=(), unbacked=unbacked)
        case = Case(example.as_micrograph(self.micrograph), self.target)
        compiles = self.tally.compiles
        fn = torch.compile(own_code(case.module()), backend=lambda gm, _: gm.forward)
        outcome = oracle.run(lambda *x: fn(*self.backend.marked(case, x)), case.inputs(), None)  # type: ignore[attr-defined]
        self.tally.compiles = compiles  # nothing was compiled, only captured
        return outcome.error is None if unbacked else not refused(outcome.error)

    def forget(self) -> None:
        """What was interrupted half-way is in no known state."""
        self.entries.clear()
        seam.reset()

    def close(self) -> None:
        self.entries.clear()
        self.stack.close()
        seam.reset()


def runner_for(
    backend: Backend,
    target: Target,
    micrograph: type[Micrograph],
    tally: Tally,
    graph: Graph | None = None,
    register: Register | None = None,
) -> Runner:
    """The runner that suits a backend: one program for many calls where it can serve them."""
    serves = isinstance(backend, Jit) and not target.headless
    runner = (Served if serves else Runner)(backend, target, micrograph, tally, graph)
    runner.register = register
    return runner


# --------------------------------------------------------------------------------------------- programs


_numbers = itertools.count(1)


def own_code(module: Any) -> Callable[..., Any]:
    """A function with a code object of its own: Dynamo keeps what it compiled by code object, and forms must not mix."""

    def call(*inputs: Any) -> Any:
        return module(*inputs)

    call.__code__ = call.__code__.replace(co_name=f"call_{next(_numbers)}")
    return call


@contextmanager
def settings(backend: Any, case: Case) -> Iterator[None]:
    """A program that stops compiling falls back to eager and is right for no merit of its own: let that be an error."""
    with ExitStack() as stack:
        if isinstance(backend, Jit):
            stack.enter_context(backend.settings(case))
        wanted = {"recompile_limit": 64, "accumulated_recompile_limit": 4096, "fail_on_recompile_limit_hit": True}
        known = {name: value for name, value in wanted.items() if hasattr(seam.dynamo_config, name)}
        stack.enter_context(seam.dynamo_config.patch(**known))
        yield

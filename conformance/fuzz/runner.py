"""Runs drawn calls on a backend and holds them against eager. Where one compiled program can serve many calls, it does."""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from conformance import oracle
from conformance.backends.base import Backend, CannotRun, Case, Jit
from conformance.backends.inductor.seam import TRACE_LOG, seam
from conformance.backends.inductor.watch import listening
from conformance.errors import UsageError
from conformance.fuzz.example import Call, Example
from conformance.fuzz.graph import Graph
from conformance.fuzz.judge import judged
from conformance.fuzz.known import Register
from conformance.fuzz.strategies import Form, example_of, ops, trigger
from conformance.micrograph import Micrograph
from conformance.stage import STAGES, Stage
from conformance.target import CPU, Target
from conformance.trace import digest
from conformance.verdict import Kind


class Rejected(Exception):
    """Eager does not take these inputs: nothing can be said of a compiler."""


class Refused(Rejected):
    """The compiler does not take these marks: the graph fixes a dim at one of these sizes."""

    def __init__(self, error: BaseException | None) -> None:
        super().__init__("a dim that is marked dynamic is fixed by the graph at these sizes")
        self.sizes = {int(size) for size in re.findall(r"specialized it to be a constant \((\d+)\)", str(error))}


@dataclass
class Tally:
    """What a session has done."""

    examples: int = 0
    rejected: int = 0
    compiles: int = 0
    guards: set[str] = field(default_factory=set)
    kernels: set[str] = field(default_factory=set)


class Runner:
    """One micrograph on one backend and target; each example is a compile of its own, watched at every stage."""

    patience: float = 0.0  # seconds for one call; 0: as long as it takes
    register: Register | None = None  # of known defects

    def __init__(
        self, backend: Backend, target: Target, micrograph: type[Micrograph], tally: Tally, graph: Graph | None = None
    ) -> None:
        self.backend, self.target, self.micrograph, self.tally, self.graph = backend, target, micrograph, tally, graph
        self.source = graph.source() if graph is not None else ""
        self.ops: frozenset[str] = ops(micrograph)  # type: ignore[arg-type]
        self.history: list[Call] = []

    def example(self, form: Form, call: Call) -> Example:
        return example_of(self.micrograph, replace(form, dynamic=False), call, (), self.graph)

    def asked(self, call: Call) -> None:
        """On a GPU an index out of range costs the context, and with it the process: what eager takes is asked of the CPU first."""
        if self.target.name != "cuda":
            return
        case = Case(Example("", (call,), mutates=()).as_micrograph(self.micrograph), CPU)
        try:
            module, inputs = case.module(), call.inputs(self.micrograph)
        except UsageError as error:
            raise Rejected(str(error)) from None
        with torch.compiler.set_stance("force_eager"):
            outcome = oracle.run(module, inputs, module, calls=self.micrograph.steps)
        if outcome.error is not None:
            raise Rejected(f"{type(outcome.error).__name__}: {outcome.error}")

    def lost(self) -> bool:
        """Is the GPU's context gone? Then nothing that this process says is worth anything."""
        if self.target.name != "cuda":
            return False
        try:
            torch.cuda.synchronize()
        except Exception:
            return True
        return False

    def run(self, form: Form, call: Call) -> list[oracle.Difference]:
        """Where the backend differs from eager; empty when it is right."""
        self.asked(call)
        case = Case(self.example(form, call).as_micrograph(self.micrograph), self.target)
        module = case.module()
        ref = reference(module, case.inputs(), case, self.backend.eager(case, module))
        self.tally.examples += 1
        self.tally.compiles += 1
        self.history = [call]
        seen = Tally()
        try:
            with counted(seen):
                return self._compiled_and_run(case, ref)
        finally:
            self.tally.guards |= seen.guards
            self.tally.kernels |= seen.kernels

    def _compiled_and_run(self, case: Case, ref: oracle.Reference) -> list[oracle.Difference]:
        try:
            compiled = self.backend.compile(case)
        except UsageError:
            raise
        except Exception as error:
            return self._crashed(error)
        try:
            return self._judge(compiled, case, ref)
        except Rejected:
            raise
        except Exception as error:
            return self._crashed(error)
        finally:
            compiled.close()

    def _crashed(self, error: Exception) -> list[oracle.Difference]:
        if declined(error):
            raise Rejected(f"{type(error).__name__}: {error}")
        return [crash(error)]

    def _judge(self, compiled: Any, case: Case, ref: oracle.Reference) -> list[oracle.Difference]:
        outcome = oracle.run(compiled, case.inputs(), compiled.module, calls=case.micrograph.steps)
        if cannot_run(outcome.error):
            return self._earlier(compiled, case, ref)
        if declined(outcome.error):
            raise Rejected(f"{type(outcome.error).__name__}: {outcome.error}")
        return judged(outcome, ref, case.inputs(), eager=self._again(case), ops=self.ops)

    def _again(self, case: Case) -> Callable[[tuple[Any, ...]], oracle.Outcome]:
        module = case.module()
        eager = self.backend.eager(case, module)
        return lambda inputs: oracle.run(eager, inputs, module, calls=case.micrograph.steps)

    def _earlier(self, compiled: Any, case: Case, ref: oracle.Reference) -> list[oracle.Difference]:
        """It was compiled and cannot run here: what it made can still be looked at, and earlier forms of it still run."""
        missing = self.backend.unavailable(self.target)
        for stage in STAGES[: Stage.RUNTIME.order]:
            if stage in missing:
                continue
            seen = compiled.observe(stage)
            if stage is Stage.CODEGEN:
                self.tally.kernels |= {digest(text) for text in seen.texts.values()}
            if seen.findings:
                return [oracle.Difference(f.kind, stage.value, f.detail) for f in seen.findings]
            program = compiled.at(stage)
            outcome = (
                oracle.run(program, case.inputs(), compiled.module, calls=case.micrograph.steps) if program else None
            )
            if outcome is None or cannot_run(outcome.error):
                continue
            if found := judged(outcome, ref, case.inputs(), False, self._again(case), self.ops):
                return found
        return []

    def known(self, call: Call, differences: Sequence[oracle.Difference]) -> bool:
        """Is all of it known already?"""
        return self.register is not None and self.register.explains(self.micrograph, self.source, call, differences)

    def static(self) -> tuple[str, ...]:
        """The dims of which every size costs a compile, where other sizes cost a run."""
        return ()

    def avoids(self, form: Form, call: Call) -> bool:
        """Is it known, before anything is run, that this call will be refused, or end the process?"""
        return self.register is not None and self.register.avoids(self.micrograph, self.source, call)

    def forget(self) -> None:
        """What was interrupted half-way is in no known state: begin anew."""

    def close(self) -> None:
        """Forget what was compiled."""


class Entry:
    """A program that serves one form."""

    def __init__(self, runner: Served, first: Call, dynamic: tuple[str, ...], unbacked: tuple[str, ...] = ()) -> None:
        self.dynamic, self.unbacked = dynamic, unbacked
        example = Example(runner.micrograph.name(), (first,), dynamic, mutates=(), unbacked=unbacked)
        self.case = Case(example.as_micrograph(runner.micrograph), runner.target)
        self.reference, self.module = self.case.module(), self.case.module()
        self.fn = runner.compile_entry(_own_code(self.module))
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
        form = Form(0, tuple((d, 2) for d in self.micrograph.dims), tuple(g for g in _plain_given(self.micrograph)))
        example = Example("", (trigger(self.micrograph, form),), dims, mutates=(), unbacked=unbacked)
        case = Case(example.as_micrograph(self.micrograph), self.target)
        compiles = self.tally.compiles
        fn = torch.compile(_own_code(case.module()), backend=lambda gm, _: gm.forward)
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


def _plain_given(micrograph: type[Micrograph]) -> Iterator[Any]:
    from conformance.fuzz.strategies import plain

    yield from plain(micrograph).given


def runner_for(
    backend: Backend,
    target: Target,
    micrograph: type[Micrograph],
    tally: Tally,
    graph: Graph | None = None,
    register: Register | None = None,
) -> Runner:
    serves = isinstance(backend, Jit) and not target.headless
    runner = (Served if serves else Runner)(backend, target, micrograph, tally, graph)
    runner.register = register
    return runner


# --------------------------------------------------------------------------------------------- helpers


def reference(
    module: Any, inputs: tuple[Any, ...], case: Case, fn: Callable[..., Any] | None = None
) -> oracle.Reference:
    ref = oracle.reference(
        module, inputs, random=case.micrograph.contract.runtime.random, calls=case.micrograph.steps, fn=fn
    )
    if ref.eager.error is not None:
        raise Rejected(f"{type(ref.eager.error).__name__}: {ref.eager.error}")
    if any(overlaps(inputs[index]) for index in oracle.mutated(ref.eager, inputs)):
        raise Rejected("it writes to elements that share memory, and which write is the last is not specified")
    return ref


def overlaps(value: torch.Tensor) -> bool:
    """Are there more elements than places for them?"""
    places = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    return places < value.numel()


def refused(error: BaseException | None, unbacked: bool = False) -> bool:
    """A mark says that a dim is never to be fixed. Where the graph fixes it, the refusal is what was asked for. A dim that is
    unbacked is not even looked at: a compiler that must look says so, and so does one whose assumption a size breaks."""
    if error is None:
        return False
    must_look = ("data-dependent", "Runtime assertion failed", "PendingUnbackedSymbol", "unbacked")
    return "ConstraintViolation" in type(error).__name__ or (
        unbacked and any(word in f"{type(error)} {error}" for word in must_look)
    )


def cannot_run(error: BaseException | None) -> bool:
    """Not here, or not by an interpreter: numpy refuses numbers that the machine wraps around (`~x` of uint8 is `x ^ -1`)."""
    return isinstance(error, CannotRun) or (isinstance(error, OverflowError) and "out of bounds for" in str(error))


def declined(error: BaseException | None) -> bool:
    """An adapter's own word that the backend is not made for this (no gradients, say), or that torch.export is not."""
    return type(error).__module__.startswith("conformance.backends.")


def crash(error: BaseException) -> oracle.Difference:
    text = str(error).strip().splitlines()
    return oracle.Difference(Kind.CRASH, "compile", f"{type(error).__name__}: {text[0][:300] if text else ''}")


_numbers = itertools.count(1)


def _own_code(module: Any) -> Callable[..., Any]:
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


class Coverage(logging.Handler):
    """Counts, from the structured trace, compiles and the distinct guards and programs that they gave."""

    def __init__(self, tally: Tally) -> None:
        super().__init__(logging.DEBUG)
        self.tally = tally

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None) or {}
        payload = getattr(record, "payload", None)
        names = {*metadata, (metadata.get("artifact") or {}).get("name", "")}
        if "dynamo_output_graph" in names:
            self.tally.compiles += 1
        elif "inductor_output_code" in names and isinstance(payload, str):
            self.tally.kernels.add(
                digest("\n".join(line for line in payload.splitlines() if not line.lstrip().startswith("#")))
            )
        elif "dynamo_cpp_guards_str" in names and isinstance(payload, str):
            self.tally.guards.add(digest(_plain_guards(payload)))


def _plain_guards(text: str) -> str:
    """Without what differs in every process: addresses, and the comments that name lines."""
    return "\n".join(re.sub(r"\b\d{6,}\b|0x[0-9a-f]+", "#", line.split("  # ")[0]) for line in text.splitlines())


@contextmanager
def counted(tally: Tally) -> Iterator[None]:
    """The trace is for us alone: whoever keeps all logs (pytest does) would keep thousands of empty lines."""
    log = logging.getLogger(TRACE_LOG)
    before, log.propagate = log.propagate, False
    try:
        with listening(Coverage(tally)):
            yield
    finally:
        log.propagate = before

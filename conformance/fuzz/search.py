"""Search one micrograph for a call on which a backend is wrong, and make that call as small as can be."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky, Unsatisfiable

from conformance.errors import UsageError
from conformance.fuzz.example import Call, Example
from conformance.fuzz.finding import key_of
from conformance.fuzz.rejection import Rejected
from conformance.fuzz.runner import Runner
from conformance.fuzz.served import Served
from conformance.fuzz.strategies import SIZES, Form, calls, example_of, fixed_sizes, pool, trigger
from conformance.fuzz.watchdog import LOST, SUPERVISED, Hung, limited
from conformance.oracle import Difference
from conformance.reduce import ddmin, descend, one_by_one
from conformance.verdict import Kind


@dataclass(frozen=True)
class Profile:
    """How much to spend. `static`: one in so many examples is compiled for its own sizes."""

    name: str
    forms: int
    examples: int
    static: int
    minutes: float
    derandomize: bool = False


PROFILES = {
    "ci": Profile("ci", forms=2, examples=25, static=0, minutes=1.0, derandomize=True),
    "nightly": Profile("nightly", forms=4, examples=200, static=100, minutes=30.0),
    "deep": Profile("deep", forms=10, examples=600, static=60, minutes=240.0),
}
SHRINKING = 45.0  # seconds for hypothesis; the rest is done by steps that know what a compile costs
BARREN = 8  # rejections in a row after which a form is left alone
POOLS = 16  # pools of forms for each micrograph: a failing example in the database belongs to one of them


class Alarm(Exception):
    """A call on which the backend differs from eager. One subclass a kind, so that shrinking stays with one fault."""

    def __init__(self, form: Form, call: Call, differences: list[Difference]) -> None:
        super().__init__(str(differences[0]))
        self.form, self.call, self.differences = form, call, differences


class Enough(BaseException):
    """It goes past hypothesis: a call without an end would be tried again and again, and its shrinker takes up to five minutes."""

    def __init__(self, alarm: Alarm) -> None:
        self.alarm = alarm


ALARMS: dict[Kind, type[Alarm]] = {kind: type(f"Alarm_{kind}", (Alarm,), {}) for kind in Kind}


@dataclass(frozen=True)
class Suspect:
    """The smallest case found, not yet confirmed in a fresh process."""

    example: Example
    differences: tuple[Difference, ...]

    @property
    def kind(self) -> Kind:
        return self.differences[0].kind


def search(
    runner: Runner,
    profile: Profile,
    number: int,
    database: ExampleDatabase | None = None,
    known: Collection[str] = (),
    out_of_time: Callable[[], bool] = lambda: False,
    journal: Callable[[Example], None] = lambda example: None,
) -> Suspect | None:
    """One round of `profile.examples` draws; a suspect, made small, or None."""
    profile = fitted(profile, runner)
    found = pool(runner.micrograph, profile.forms, number % POOLS)
    # A graph whose guards ask for a compile at almost every size has had its turn after so many: sooner, if it is one of thousands.
    most = runner.tally.compiles + (4 if runner.graph else 10) * profile.forms
    fixed = fixed_sizes(runner.micrograph, runner.static(), 2 if runner.graph else 4, number)
    alarms: list[tuple[float, Alarm]] = []
    barren: Counter[Form] = Counter()  # how often in a row a form was rejected

    @settings(
        max_examples=profile.examples,
        database=database,
        deadline=None,
        phases=[Phase.reuse, Phase.generate, Phase.shrink] if database is not None else [Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @seeded(0 if profile.derandomize else number)  # below the settings: a seed takes the database away
    @given(st.data())
    def one(data: st.DataObject) -> None:
        if not alarms and (out_of_time() or runner.tally.compiles > most):
            return
        if alarms and time.monotonic() > alarms[0][0] + SHRINKING:
            raise Enough(
                min((alarm for _, alarm in alarms), key=lambda alarm: (alarm.form.cost, sum(alarm.call.dims.values())))
            )
        form = data.draw(st.sampled_from(found), label="form")
        if barren[form] >= BARREN:
            reject()  # before anything is made: hypothesis asks ten times for each example that it wants
        if profile.static and data.draw(st.integers(1, profile.static), label="static") == profile.static:
            form = replace(form, dynamic=False)
        call = data.draw(calls(runner.micrograph, form, fixed), label="call")
        if runner.avoids(form, call):
            reject()
        barren[form] += 1
        try:
            check(runner, form, call, known, journal)
            barren[form] = 0
        except Alarm as alarm:
            alarms.append(
                (time.monotonic(), alarm)
            )  # from now on it is made smaller, and must fail again when it is asked to
            raise

    started = time.monotonic()
    try:
        one()
    except Alarm as alarm:
        return Shrinker(runner, alarm).smallest()
    except Enough as enough:
        return Shrinker(runner, enough.alarm).smallest()
    except Flaky as flaky:
        return _from_history(runner, flaky)
    except Unsatisfiable:
        return None
    finally:
        runner.seconds = time.monotonic() - started  # type: ignore[attr-defined]
    return None


def fitted(profile: Profile, runner: Runner) -> Profile:
    """Where each example is a compile, a few of many forms say more than many of a few, and the next micrograph has its turn."""
    return (
        profile
        if isinstance(runner, Served)
        else replace(profile, forms=2 * profile.forms, examples=max(profile.examples // 25, 2))
    )


def check(runner: Runner, form: Form, call: Call, known: Collection[str], journal: Callable[[Example], None]) -> None:
    journal(example_of(runner.micrograph, form, call, getattr(runner, "dynamic", None) or (), runner.graph))
    try:
        differences = _run(runner, form, call)
    except Rejected:
        runner.tally.rejected += 1
        reject()
    finally:
        if os.environ.get(SUPERVISED) and runner.lost():
            os._exit(LOST)  # what was being run is written down: another process goes on, and looks at it
    if differences and runner.known(call, differences):
        return
    if differences and differences[0].kind is Kind.TIMEOUT:
        raise Enough(ALARMS[Kind.TIMEOUT](form, call, differences))
    if differences and key_of(runner.micrograph.name(), None, differences[0]) not in known:
        raise ALARMS[differences[0].kind](form, call, differences)


def _run(runner: Runner, form: Form, call: Call) -> list[Difference]:
    try:
        with limited(runner.patience):
            return runner.run(form, call)
    except Hung as hung:
        runner.forget()
        return [Difference(Kind.TIMEOUT, "call", str(hung))]


# ----------------------------------------------------------------------------------------------- smaller


class Shrinker:
    """Hypothesis has made the call small within the forms of its pool; here the form becomes plain, step by step, and then
    the call smaller again. Every trial may cost a compile, so that there is a limit."""

    def __init__(self, runner: Runner, alarm: Alarm, seconds: float = 0.0) -> None:
        self.runner, self.alarm = runner, alarm
        seconds = seconds or (40.0 if runner.graph else 120.0)  # a generated graph will lose lines first
        self.until = time.monotonic() + seconds
        self.kind = alarm.differences[0].kind

    def smallest(self) -> Suspect:
        if (
            self.kind is Kind.TIMEOUT
        ):  # which of the two has no end, the call or the one that its form is compiled with?
            first = trigger(self.runner.micrograph, self.alarm.form)
            any(self._try(replace(self.alarm.form, dynamic=False), call) for call in (self.alarm.call, first))
        start = self.alarm.form, self.alarm.call
        descend(start, lambda point: self._steps(*point), lambda point: self._try(*point), self._late)
        alarm = self.alarm
        return Suspect(self._without_trigger(self.runner.example(alarm.form, alarm.call)), tuple(alarm.differences))

    def _late(self) -> bool:
        return time.monotonic() > self.until

    def _steps(self, form: Form, call: Call) -> Iterator[tuple[Form, Call]]:
        for simpler in form.simpler():
            kept = tuple(replace(g, values=old.values) for g, old in zip(simpler.given, call.given, strict=True))
            for least in (2, 3) if simpler.strata != form.strata else (2,):
                dims = {
                    d: s if s < 2 else max(call.dims[d], 0 if d in simpler.unbacked else least)
                    for d, s in simpler.strata
                }
                yield simpler, Call(dims, kept, simpler.dtype, call.seed)
        for dim, size in call.dims.items():
            near = (size // 2, size // 2 + 1, *range(size - 4, size))
            for smaller in sorted({s for s in (*range(2, 20), *SIZES, *near) if 2 <= s < size}):
                yield form, replace(call, dims={**call.dims, dim: smaller})
        for index, given_ in enumerate(call.given):
            if given_.values != "as declared":
                plain = replace(given_, values="as declared")
                yield form, replace(call, given=(*call.given[:index], plain, *call.given[index + 1 :]))
        if call.seed:
            yield form, replace(call, seed=0)

    def _try(self, form: Form, call: Call) -> bool:
        if self._late():
            return False
        try:
            differences = _run(self.runner, form, call)
        except (Rejected, UsageError):
            return False
        if not differences or differences[0].kind is not self.kind or self.runner.known(call, differences):
            return False
        self.alarm = ALARMS[self.kind](form, call, differences)
        return True

    def _without_trigger(self, example: Example) -> Example:
        """Is the call wrong when it is the first one, compiled for its own sizes?"""
        form = replace(self.alarm.form, dynamic=False)
        return self.runner.example(form, self.alarm.call) if self._try(form, self.alarm.call) else example


def _from_history(runner: Runner, flaky: Flaky) -> Suspect | None:
    """It failed and then did not: perhaps it takes the calls before it. Replay them on a program of their own; leave out what
    is not needed."""
    alarm = next((e for e in _inner(flaky) if isinstance(e, Alarm)), None)
    if alarm is None or not isinstance(runner, Served) or not alarm.form.dynamic:
        return None
    sequence = list(runner.entries[alarm.form].history) if alarm.form in runner.entries else []
    entry = runner.entries.get(alarm.form)
    marks = (entry.dynamic, entry.unbacked) if entry is not None else ((), ())
    end = runner.replay(sequence, *marks) if sequence else None
    if end is None:
        return None

    def fails(calls: list[Call]) -> bool:
        try:
            return runner.replay(calls, *marks) is not None
        except Rejected:
            return False

    sequence = ddmin(sequence[: end + 1], one_by_one(fails))
    sequence = _plainest(runner, sequence, marks)
    example = Example(runner.micrograph.name(), tuple(sequence), marks[0], runner.graph, unbacked=marks[1])
    return Suspect(example, tuple(alarm.differences))


def _plainest(runner: Served, sequence: list[Call], marks: tuple[tuple[str, ...], tuple[str, ...]]) -> list[Call]:
    """Each call as small as it can be while the sequence still fails at its end."""
    for index, call in enumerate(sequence):
        small = {d: min(s, 2) for d, s in call.dims.items()}
        plain = tuple(replace(g, values="as declared") for g in call.given)
        for trial in (Call(small, plain, call.dtype, 0), replace(call, dims=small), replace(call, given=plain, seed=0)):
            changed = [*sequence[:index], trial, *sequence[index + 1 :]]
            try:
                if runner.replay(changed, *marks) == len(changed) - 1:
                    sequence = changed
                    break
            except Rejected:
                continue
    return sequence


def _inner(error: BaseException) -> Iterator[BaseException]:
    yield error
    for inner in getattr(error, "exceptions", ()) or ():
        yield from _inner(inner)
    for inner in (error.__cause__, error.__context__):
        if inner is not None:
            yield from _inner(inner)

"""A fuzzing session: round after round over micrographs and generated graphs, remembering where it was."""

from __future__ import annotations

import json
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis.database import ExampleDatabase

from conformance import environment
from conformance.backends.base import Backend, Jit
from conformance.errors import UsageError, first_line
from conformance.files import read_json
from conformance.fuzz import graph_gen, graph_reducer, guard_search, program_report
from conformance.fuzz.coverage import Tally
from conformance.fuzz.database import Keyed
from conformance.fuzz.example import Example, read
from conformance.fuzz.finding import Finding, Findings, confirm, finding_of, key_of
from conformance.fuzz.foreign import place
from conformance.fuzz.graph import Graph, micrograph_of
from conformance.fuzz.home import home
from conformance.fuzz.known import Register
from conformance.fuzz.program_lane import Lane
from conformance.fuzz.search import POOLS, Profile, Suspect, search
from conformance.fuzz.served import runner_for
from conformance.fuzz.watchdog import PATIENCE, SUPERVISED
from conformance.micrograph import Micrograph
from conformance.oracle import Difference
from conformance.target import Target
from conformance.trace import digest
from conformance.verdict import Kind

HUNG = (Kind.TIMEOUT.value, Kind.CRASH.value)  # what died may have been ended since it hung
ROUNDS = 1000  # of one seed: the next seed begins with the next thousand
GRAPHS = "generated"  # stands for a graph made up on the spot, among the names of micrographs
PROGRAMS = "programs"  # and for programs of the grammars; `programs.writes` for those of one grammar
SHARE = 4  # programs have so many times the time of micrographs and graphs


@dataclass
class Session:
    backend: Backend
    target: Target
    micrographs: dict[str, type[Micrograph]]
    profile: Profile
    database: ExampleDatabase
    minutes: float
    graphs: bool = True
    guards: bool = True
    seed: int = 0
    patience: float = PATIENCE  # seconds for one call
    grammars: tuple[str, ...] = ()  # of which programs are drawn; none: no programs
    tally: Tally = field(default_factory=Tally)
    findings: Findings = field(default_factory=Findings)
    new: list[Finding] = field(default_factory=list)
    unconfirmed: list[Finding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    tell: Callable[[str, str], None] = lambda name, what: None  # progress: of which micrograph, and what

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.began = time.time()
        self.begun: list[
            str
        ] = []  # micrographs of this pass: where a process died of one, the next does not begin with it
        self.id = os.environ.get(SUPERVISED, "")
        self.known = {
            f.key
            for f in self.findings.known.values()
            if (f.backend, f.target) == (self.backend.name, self.target.name)
        }
        self.register = Register.of(self.backend, self.target)
        self.path = home() / f"{self.backend.name}-{self.target.name}.json"
        self.journal = home() / f"{self.backend.name}-{self.target.name}-{os.getpid()}.current"
        self.rounds: dict[str, int] = {}
        self.own = 0.0  # seconds that went to micrographs and graphs
        native = (self.backend.name, self.target.name) == ("inductor", "cpu")
        where = "" if native else place(self.backend.name, self.target.name)
        self.lane = Lane(self.seed, self.minutes, self.grammars, self.patience, where)
        self._resume()

    # ------------------------------------------------------------------------------------------ resuming

    def _resume(self) -> None:
        """How many rounds each micrograph has had, from all sessions before on this version; and, where an earlier process of this
        very session died, what it had done."""
        if not os.path.lexists(self.path):
            return
        try:
            known = read_json(self.path, "the session")
            if known.get("env") == self._env():
                self.rounds = {str(k): int(v) for k, v in known["rounds"].items()}
                if self.id and known["session"]["id"] == self.id:
                    self._go_on(known["session"])
        except (UsageError, ValueError, KeyError, TypeError, AttributeError):
            self.rounds = {}
            self.problems.append(f"{self.path} is damaged: the session starts from the beginning")

    def _go_on(self, said: dict[str, Any]) -> None:
        self.started -= time.time() - float(said["began"])
        self.began, self.begun = float(said["began"]), list(said["begun"])
        self.tally = Tally(**{k: set(v) if isinstance(v, list) else v for k, v in said["tally"].items()})  # type: ignore[arg-type]
        self.new = [self.findings.known[id] for id in said["new"] if id in self.findings.known]
        self.problems += said["problems"]
        self.register.met.update(said.get("known", {}))
        self.lane.go_on(said["programs"], self.started)

    def _env(self) -> dict[str, str]:
        return self.backend.versions()

    def _remember(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        done = {
            "id": self.id,
            "began": self.began,
            "begun": self.begun,
            "tally": {k: sorted(v) if isinstance(v, set) else v for k, v in vars(self.tally).items()},
            "new": [finding.id for finding in self.new],
            "known": dict(self.register.met),
            "problems": self.problems,
            "programs": self.lane.to_json(),
        }
        unfinished = self.path.with_suffix(".new")  # the process may be ended at any moment
        unfinished.write_text(json.dumps({"env": self._env(), "rounds": self.rounds, "session": done}))
        unfinished.replace(self.path)

    def _write_down(self, example: Example) -> None:
        """So that, should the process die now, it is known at what."""
        self.journal.write_text(json.dumps(example.to_json()))

    def died(self) -> Iterator[Finding]:
        """What earlier processes died of."""
        for file in self.journal.parent.glob(f"{self.backend.name}-{self.target.name}-*.current"):
            said = file.stem.rsplit("-", 1)[1]
            pid = int(said) if said.isascii() and said.isdigit() else 0
            if pid != os.getpid() and not Path(f"/proc/{pid}").exists():
                try:
                    example = read(file)
                    yield finding_of(
                        example, Difference(Kind.CRASH, "call", "the process died"), self.backend.name, self.target.name
                    )
                except UsageError:
                    self.problems.append(f"{file} is damaged and left out")
                file.unlink(missing_ok=True)

    # ------------------------------------------------------------------------------------------- running

    def out_of_time(self) -> bool:
        return time.monotonic() - self.started > 60 * self.minutes

    def run(self) -> None:
        home().mkdir(parents=True, exist_ok=True)
        try:
            with own_cache():
                if self.grammars:
                    self.lane.prepare(self.backend, self.target)
                for finding in self.died():
                    self._report(finding)
                while not self.out_of_time():
                    for name in self._next():
                        if self.out_of_time():
                            break
                        if name in self.begun:
                            continue
                        self.rounds[name] = self.rounds.get(name, ROUNDS * self.seed - 1) + 1
                        self.begun += [name] if name != GRAPHS else []
                        self._remember()
                        start = time.monotonic()
                        self._round(name, self.rounds[name])
                        self.own += time.monotonic() - start
                        self._programs()
                    self.begun.clear()
                    self._programs(alone=not self.micrographs and not self.graphs)
                    if self.profile.derandomize:
                        break  # another time would be the same
            self._remember()
        finally:
            self.lane.workers.close()
            self.journal.unlink(missing_ok=True)

    def _programs(self, alone: bool = False) -> None:
        """Programs of the grammars, until they have had their share of the time."""
        lane = self.lane
        lane.tell = self.tell
        while self.grammars and not self.out_of_time():
            if not alone and lane.seconds > SHARE * self.own:
                return
            found = len(lane.new)
            try:
                lane.step()
            except Exception as error:  # the fuzzer's own fault: say so, go on with the next
                at = traceback.extract_tb(error.__traceback__)[-1]
                self._complain(f"programs: {first_line(error)} ({Path(at.filename).name}:{at.lineno})")
            while lane.problems:
                self._complain(lane.problems.pop())
            if len(lane.new) > found:
                self._remember()

    def _next(self) -> list[str]:
        """Those first that have had the fewest rounds, of all families in turn; a generated graph after each."""
        names = sorted(
            self.micrographs, key=lambda name: (self.rounds.get(name, -1), digest(f"{name}{self.seed or ''}"))
        )
        return ([x for name in names for x in (name, GRAPHS)] or [GRAPHS]) if self.graphs else names

    def _round(self, name: str, number: int) -> None:
        try:
            graph = self._graph() if name == GRAPHS else None
            micrograph = micrograph_of(graph) if graph else self.micrographs[name]
            suspect = self._search(micrograph, number, graph)
            if suspect is None and graph is None:
                suspect = self._guards(micrograph, number)
            if suspect is not None and graph:
                self.tell(micrograph.name(), "making the graph smaller")
                suspect = graph_reducer.smaller(
                    suspect, self.backend, self.target, patience=self.patience, register=self.register
                )
        except UsageError as error:
            self.problems.append(f"{name}: {error}")
            return
        except Exception as error:  # the fuzzer's own fault: say so, go on with the next
            at = traceback.extract_tb(error.__traceback__)[-1]
            self.problems.append(f"{name}, round {number}: {first_line(error)} ({Path(at.filename).name}:{at.lineno})")
            return
        if suspect is not None:
            self.tell(name, "confirming in a fresh process")
            self._report(finding_of(suspect.example, suspect.differences[0], self.backend.name, self.target.name))

    def _graph(self) -> Graph:
        """The next that does not contain what was found before: it would only be found again."""
        known = [*self.findings.known.values(), *self.unconfirmed]
        found = [
            graph_gen.signature(f.example.graph) for f in known if f.example.graph and f.backend == self.backend.name
        ]
        while True:
            graph = graph_gen.graph(self.rounds[GRAPHS])
            if not any(lines <= graph_gen.signature(graph) for lines in found):
                return graph
            self.rounds[GRAPHS] += 1

    def _search(self, micrograph: type[Micrograph], number: int, graph: Graph | None) -> Suspect | None:
        name = micrograph.name()
        self.tell(name, "")
        before = self.tally.examples, self.tally.rejected
        runner = runner_for(self.backend, self.target, micrograph, self.tally, graph, self.register)
        runner.patience = self.patience
        place = f"{self.backend.name}/{self.target}/{name}/{number % POOLS}"
        database = None if graph else Keyed(self.database, place, self._complain)

        def out_of_time() -> bool:
            self.tell(name, "")
            return self.out_of_time()

        try:
            profile = graph_gen.budget(self.profile) if graph else self.profile
            suspect = search(runner, profile, number, database, self.known, out_of_time, self._write_down)
        finally:
            runner.close()
        ran, rejected = self.tally.examples - before[0], self.tally.rejected - before[1]
        if not ran and rejected and not graph:
            self.problems.append(f"{name}: eager rejects every input that its own specs allow ({rejected} draws)")
        return suspect

    def _complain(self, text: str) -> None:
        """Once is enough."""
        if text not in self.problems:
            self.problems.append(text)

    def _guards(self, micrograph: type[Micrograph], number: int) -> Suspect | None:
        """Sequences of calls against the model of guards, for a backend that Dynamo captures for."""
        if (
            not self.guards
            or not isinstance(self.backend, Jit)
            or self.target.headless
            or not guard_search.playable(micrograph)
        ):
            return None
        found = None
        for compiled in (False, True):
            # With the compiler itself a sequence costs its compiles: one micrograph in four, another four the next round.
            if self.out_of_time() or found or (compiled and (int(digest(micrograph.name()), 16) + number) % 4):
                continue
            self.tell(micrograph.name(), "guards, compiled" if compiled else "guards")
            door = self.backend.compile_entry if compiled else None
            found = guard_search.search_guards(
                micrograph,
                door,
                1 if compiled else 3,
                number=number,
                compiled=compiled,
                patience=self.patience,
                journal=self._write_down,
            )
        if found is None:
            return None
        difference = Difference(found[1].kind, "capture", found[1].detail)
        return (
            Suspect(found[0], (difference,)) if key_of(micrograph.name(), None, difference) not in self.known else None
        )

    def _report(self, suspect: Finding) -> None:
        """Confirmed in a fresh process, it is a finding; else it is kept apart."""
        self.known.add(suspect.key)
        confirmed = confirm(suspect, timeout=self.patience + 30 if suspect.kind in HUNG else 600.0)
        if not confirmed.confirmed:
            self.unconfirmed.append(confirmed)
            return
        said = Difference(Kind(confirmed.kind), "", confirmed.detail)
        self.known.add(key_of(confirmed.example.micrograph, None, said))
        example = (
            confirmed.example
        )  # a fresh process looks at every stage, and may see the cause where only its effect was seen
        if self.register.explains(example.base(), example.source, example.calls[-1], [said]):
            return
        self.findings.add(confirmed)
        self.new.append(confirmed)


@contextmanager
def own_cache() -> Iterator[None]:
    """Compiled code of a session is kept for the session: the state of the cache at its start is known, and empty."""
    before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="conformance-fuzz-", ignore_cleanup_errors=True) as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        try:
            yield
        finally:
            os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
            if before is not None:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = before


def summary(session: Session) -> dict[str, Any]:
    seconds = time.monotonic() - session.started
    tally = session.tally
    return {
        "examples": tally.examples,
        "rejected": tally.rejected,
        "compiles": tally.compiles,
        "examples_per_minute": round(60 * tally.examples / max(seconds, 1e-9), 1),
        "guards": len(tally.guards),
        "kernels": len(tally.kernels),
        "findings": len(session.new),
        "unconfirmed": len(session.unconfirmed),
        "known": sum(session.register.met.values()),
        "programs": program_report.summary(session.lane),
        "seconds": round(seconds, 1),
        "torch": environment.versions().get("torch", ""),
    }


def chosen(names: Iterable[str], globs: Iterable[str]) -> list[str]:
    from fnmatch import fnmatchcase

    globs = list(globs)
    return [name for name in names if not globs or any(fnmatchcase(name, glob) for glob in globs)]

"""From a subject to its stage, its culprit, a smaller script and a repro that was seen to fail."""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance import plugins, repro
from conformance.reduce.script import Reduced, ScriptReducer, processor_time, statements
from conformance.stage import Stage
from conformance.triage import answer as said
from conformance.triage.ablation import Ablation
from conformance.triage.adapter import Adapter
from conformance.triage.answer import Answer
from conformance.triage.ending import Ending
from conformance.triage.hold import Hold
from conformance.triage.ladder import climb
from conformance.triage.runs import Runs
from conformance.triage.subject import Script, Subject

KINDS = {"crash": "crash", "signal": "crash", "hang": "timeout", "raise": "wrong_result", "exit": "wrong_result"}
WHOLE = Hold()
EAGER = Hold("eager")
LARGE = 300  # nodes of captured graphs: the C++ compiler takes much longer than the interpreter's start
FEW_LINES = 3  # of a program: so many are named as the culprit
SHORT = 20.0  # seconds of processor time, enough for a small script
IDLE = 5.0  # seconds for which nothing runs in a program that is known to hang
QUICK, TIMES_LONGER = 5.0, 3.0  # seconds that a smaller script has; or so many times what the script itself takes
WAITS = 30.0  # seconds for which nothing runs in a program of which that is not known
CULPRIT_SECONDS = 60.0  # of processor time for naming the culprit
# Seconds of processor time for the reducer: one a statement, so many at least and at most; where every try runs the C++
# compiler, twice as many. A program that hangs may be asleep: there it is the most, by the clock.
LEAST, MOST = 15.0, 60.0


class Search:
    """The steps of one triage. `plain` runs the program in an interpreter of its own. After `within` seconds by the
    clock no culprit is looked for any more and nothing made smaller: what is known is verified and said."""

    def __init__(
        self,
        subject: Subject,
        adapter: Adapter,
        runs: Runs,
        versions: dict[str, str],
        *,
        plain: Callable[[], Ending] | None = None,
        limit: float | None = None,
        within: float = math.inf,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.subject, self.adapter, self.runs = subject, adapter, runs
        self.plain, self.limit, self.within, self.say = plain, limit, within, say
        self.answer = Answer(subject.name, said.UNDECIDED, Ending(0), versions=versions)
        self.shrunk: Reduced | None = None
        self.assumed = False  # see `_failing`
        self.verifies = False  # is a repro written, and so run alone?
        self.hangs = False
        self.alone: dict[str, Ending] = {}  # how texts end as repros, in an interpreter of their own

    def run(self, out: Path | None, shrink: bool = True) -> Answer:
        """All steps; the answer is filled as they go."""
        found = self.answer
        self.runs.until = time.monotonic() + self.within
        self.verifies = isinstance(self.subject, Script) and out is not None and self.plain is not None
        with self._timed("given"):
            if not self._fails():
                return self._done()
        with self._timed("stage"):
            found.climb = climb(self.runs, self.subject, self.adapter.rungs, found.given)
            if self._in_eager():
                return self._done()
            found.stage, note = self.adapter.stage(self.runs, self.subject, found.climb)
            found.notes += [note] if note else []
        if found.stage is None:
            found.unwritten = note or "no rung of the compiler shows the failure"
            return self._done()
        found.verdict = said.FOUND
        self.say(f"stage: {found.stage}")
        with self._timed("culprit"), self._bounded(CULPRIT_SECONDS, "the search for the culprit"):
            found.culprit = self.adapter.culprit(self.runs, self.subject, found.climb, found.stage)
        self.say(f"culprit: {found.culprit}")
        if isinstance(self.subject, Script) and out is not None:
            with self._timed("reduce"):
                self.shrunk = self._reduced(self.subject) if shrink else None
                self._name_what_is_left(self.subject)
            with self._timed("repro"):
                self._write(self.subject, out)
                self._check_assumption()
        return self._done()

    @contextmanager
    def _bounded(self, seconds: float, what: str) -> Iterator[None]:
        """Inside, nothing new is tried after so many seconds of processor time; it is said if that happened."""
        self.runs.spent_at = processor_time() + seconds
        try:
            yield
            if self.runs.late():
                self.answer.notes.append(f"{what} was stopped: its time was used up")
        finally:
            self.runs.spent_at = math.inf

    def _done(self) -> Answer:
        self.answer.runs = self.runs.counted
        return self.answer

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.answer.seconds[step] = self.answer.seconds.get(step, 0.0) + time.monotonic() - start

    # ------------------------------------------------------------------------------------------------ stage

    def _fails(self) -> bool:
        """Does the program fail as it is? One that seems right is run in a new interpreter, too. One that fails is run
        there when its repro is verified."""
        lowest, highest = self._cheap_ends()
        eager, captured = self.runs(self.subject, EAGER, lowest)
        if self.runs.idle is None:
            self.runs.idle = min(self.runs.limit, max(WAITS, 4 * eager.seconds))
        if self.verifies and eager.right and not captured.right:
            self._expect_hang(captured, eager)
            if self.runs(self.subject, highest)[0].like(captured):
                return self._failing(captured, assumed=True)
        alone = None
        if (
            self.plain is not None and captured.right and graph_nodes(captured) > LARGE
        ):  # likely right, and dear to compile
            alone = self.plain()
            if alone.right:
                return self._right(alone)
        forked = self.runs(self.subject, WHOLE, highest)[0]
        if forked.right:
            alone = alone or (self.plain() if self.plain is not None else forked)
            return self._right(alone)
        self._expect_hang(forked, eager)
        return self._failing(forked)

    def _right(self, alone: Ending) -> bool:
        """The program is right, or so it seems: what counts is how it ends in an interpreter of its own."""
        found = self.answer
        found.given, found.verdict = alone, said.RIGHT if alone.right else said.FLAKY
        found.detail = "" if alone.right else f"in a new interpreter {alone.told()}, forked it is right"
        return False

    def _cheap_ends(self) -> tuple[Hold, Hold]:
        """The lowest and the highest rung for which no code is generated."""
        cheap = [rung for rung in self.adapter.rungs if not rung.costly]
        return Hold(cheap[1].name), Hold(cheap[-1].name)

    def _failing(self, ending: Ending, assumed: bool = False) -> bool:
        """`assumed`: the program was not run as a whole. It fails alike when its graphs run as they were captured and
        after all graph passes, so that it will; whether it does is seen when the repro is verified."""
        self.assumed = assumed
        self.answer.given = ending
        self.answer.kind, self.answer.detail = KINDS[ending.kind], ending.told()
        return True

    def _expect_hang(self, seen: Ending, eager: Ending) -> None:
        """Once it is known that the program hangs, the other runs need not wait as long."""
        if seen.kind == "hang" and not self.hangs:
            self.hangs = True
            self.runs.limit = max(SHORT, self.runs.limit / 4)
            self.runs.idle = min(self.runs.limit, max(IDLE, 4 * eager.seconds))

    def _in_eager(self) -> bool:
        found = self.answer
        assert found.climb is not None
        if found.climb.state("eager") == "fails":
            found.verdict, found.detail = said.IN_EAGER, found.climb.endings["eager"].told()
            return True
        return False

    # ----------------------------------------------------------------------------------------------- reduce

    def _reduced(self, subject: Script) -> Reduced | None:
        """A smaller script that fails at the same stage in the same way and is cured by the same thing."""
        found = self.answer
        if self.runs.late():
            return None
        question = Question(self.runs, subject, found, self.runs.folder)
        limit = self._budget(subject.text) if self.limit is None else self.limit
        clock = time.monotonic if found.given.kind == "hang" else processor_time
        reducer = ScriptReducer(
            subject.text, question.holds, limit, self.runs.workers, lambda: math.inf if self.runs.late() else clock()
        )
        shrunk = reducer.run()
        found.reduced = f"{shrunk.before} statements → {shrunk.after}, {shrunk.tries} tries"
        self.say(f"reduced: {found.reduced}")
        return shrunk

    def _budget(self, text: str) -> float:
        """Seconds for the reducer."""
        assert self.answer.climb is not None
        failing = self.answer.climb.first_failing
        costly = failing is not None and failing.costly
        if self.answer.given.kind == "hang":
            return MOST
        return min(MOST, (2 if costly else 1) * max(LEAST, statements(ast.parse(text))))

    def _name_what_is_left(self, subject: Script) -> None:
        """Where no step could be turned off and no op is named, the lines that are left of the compiled program are."""
        culprit = self.answer.culprit
        if self.shrunk is None or culprit is None or culprit.steps or culprit.ops or self.answer.climb is None:
            return
        failing = self.answer.climb.first_failing
        smaller = subject.variant(self.runs.folder / subject.path.name, self.shrunk.text)
        ending = self.runs(smaller, Hold(failing.name if failing is not None else "whole"))[0]
        places = [place.split(": ", 1) for graph in ending.named("graph") for _, place in graph.get("calls", ())]
        lines = list(dict.fromkeys(place[1] for place in places if len(place) == 2 and place[1].strip()))
        if self.answer.stage == Stage.CAPTURE:  # what Dynamo lost has no call in the graph
            numbers = {int(place[0].rpartition(":")[2]) for place in places if place[0].rpartition(":")[2].isdigit()}
            whole = statements_around(self.shrunk.text, numbers)
            lines = whole if len(whole) <= FEW_LINES else lines
        if 0 < len(lines) <= FEW_LINES:
            culprit.name = "; ".join(lines)

    # ------------------------------------------------------------------------------------------------ repro

    def _write(self, subject: Script, out: Path) -> None:
        """Write the reduced script, or the script as it was given, whichever was seen to fail alone and to be right
        when cured."""
        found = self.answer
        assert found.stage is not None
        texts = [subject.text] if self.shrunk is None else [self.shrunk.text, subject.text]
        for text in dict.fromkeys(texts):
            for cure in self.adapter.cures(found.stage, found.culprit):
                alone, cured = self._verified(subject, text, cure, out)
                if alone and cured:
                    return
                if not alone:  # whatever the cure is
                    break

    def _check_assumption(self) -> None:
        """A program that was taken to fail and of which no repro fails alone is run as it is."""
        found = self.answer
        if self.assumed and found.repro is None and self.plain is not None and (alone := self.plain()).right:
            found.given, found.verdict = alone, said.RIGHT
            found.detail = "as a whole; not when the graphs that Dynamo captured are run as they are"

    def _verified(self, subject: Script, text: str, cure: tuple[str, ...], out: Path) -> tuple[bool, bool]:
        """Does the text exit 1 alone, and 0 with the cure? Then it stays as the repro."""
        found = self.answer
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{subject.name}_{found.stage}.py"
        report = self._report(cure)
        guarded = found.given.code != 1
        path.write_text(repro.script_text(text, report, guarded, subject.arguments), encoding="utf-8")
        folder = subject.imports_beside()
        asked = [(path, folder | {repro.CURE_VARIABLE: "1"})]
        asked += [] if text in self.alone else [(path, folder)]  # another cure changes nothing of what runs alone
        right, *ended = self.runs.plain(*asked, limit=2 * repro.GUARD_SECONDS)
        alone = self.alone.setdefault(text, ended[0]) if ended else self.alone[text]
        if alone.code == 1 and right.code == 0:
            plugged = f", with {', '.join(plugins.named())} loaded," if plugins.named() else ""
            found.repro, found.verified = path, f"alone{plugged} it exits 1; cured it exits 0"
            found.issue = path.with_suffix(".md")
            found.issue.write_text(repro.issue_text(report, path), encoding="utf-8")
            found.unwritten = ""
        else:
            path.unlink()
            found.unwritten = f"the script alone ends with {alone.told()}; with the cure: {right.told()}"
        return alone.code == 1, right.code == 0

    def _report(self, cure: tuple[str, ...]) -> repro.Report:
        found = self.answer
        assert found.climb is not None
        what = found.culprit.name if found.culprit is not None else found.subject
        return repro.Report(
            title=f"{self.adapter.entry}: {found.kind.replace('_', ' ')}, {found.stage} ({what})"[:200],
            stage=str(found.stage),
            culprit=str(found.culprit),
            expected="the script exits 0, as it does in eager",
            got=found.given.told(),
            versions=found.versions,
            cure=cure,
            prelude=self.adapter.prelude(),
            found="The script was run with every compile stopped at one stage after the other:\n\n"
            + "\n".join(f"- {line}" for line in found.climb.lines()),
            first_bad=found.first_bad,
            details={"The end of its output": found.given.last_lines() if found.given.kind == "exit" else ""},
        )


def graph_nodes(ending: Ending) -> int:
    """How large the captured graphs of a run are together."""
    return sum(graph["nodes"] for graph in ending.named("graph"))


def statements_around(text: str, numbers: set[int]) -> list[str]:
    """The statements of the functions that these lines stand in, the first line of each; of all functions, where no line
    is known: what is left of the program calls nothing that a graph could hold."""
    functions = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    found: dict[str, None] = {}
    for number in sorted(numbers or {node.lineno for node in functions}):
        around = [node for node in functions if node.lineno <= number <= (node.end_lineno or 0)]
        innermost = max(around, key=lambda node: node.lineno, default=None)
        for statement in innermost.body if innermost is not None else ():
            found[ast.unparse(statement).splitlines()[0]] = None
    return list(found)


class Question:
    """What the reducer asks of a smaller script: does it fail at the same rung, in the same way, and is it right
    without the culprit?"""

    def __init__(self, runs: Runs, subject: Script, answer: Answer, folder: Path) -> None:
        self.runs, self.subject, self.given, self.folder, self.count = runs, subject, answer.given, folder, 0
        assert answer.climb is not None
        failing, below = answer.climb.first_failing, answer.climb.last_right
        self.failing = Hold(failing.name if failing is not None else "whole")
        if answer.stage in (Stage.CODEGEN, Stage.FUSION):
            self.failing = Hold("program")
        steps = [step.by_name() for step in answer.culprit.steps] if answer.culprit is not None else []
        self.cured = (
            Ablation(runs, subject, self.failing).without(steps) if steps else Hold(below.name if below else "eager")
        )
        # A smaller script may never end where the script itself does: a loop without its counter.
        known = {"eager": answer.climb.endings["eager"], self.failing.rung: answer.given}
        self.limits = {rung: max(QUICK, TIMES_LONGER * ending.seconds) for rung, ending in known.items()}

    def holds(self, texts: list[str]) -> list[bool]:
        alive = {text: self._variant(text) for text in texts}
        for hold, wanted in ((EAGER, True), (self.failing, False), (self.cured, True)):
            pairs = [(text, (subject, hold)) for text, subject in alive.items()]
            limit = math.inf if self.given.kind == "hang" and not wanted else self.limits.get(hold.rung, math.inf)
            endings = self.runs.many([pair for _, pair in pairs], limit)
            for (text, _), ending in zip(pairs, endings, strict=True):
                if not (ending.right if wanted else ending.like(self.given)):
                    del alive[text]
        return [text in alive for text in texts]

    def _variant(self, text: str) -> Script:
        folder = self.folder / f"{self.count:04}"
        folder.mkdir()
        self.count += 1
        return self.subject.variant(folder / self.subject.path.name, text)

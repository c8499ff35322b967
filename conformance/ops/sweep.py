"""A sweep: operators in forked processes, a cell for each dtype and stage. A process that dies is replaced, and the call that it died on
is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.ops.call import Key
from conformance.ops.cells import Results
from conformance.ops.examination import Begun, Judged, Skipped, Task, examine
from conformance.ops.form import LAYOUT_FORMS
from conformance.ops.judgement import OnTarget
from conformance.ops.operator import Operator
from conformance.ops.rung import Rung
from conformance.ops.words import CRASH
from conformance.processes import Death, Job, Pool
from conformance.verdict import Kind

DTYPES_A_PROCESS = 5
SAMPLES = 3  # of an operator in a dtype, unless another number is asked for
LIMIT = 900.0  # seconds a process may take; a machine may be slow
MEMORY = 6 << 30


@dataclass(frozen=True)
class Sweep:
    """What is asked for."""

    backend: str
    target: str
    operators: tuple[Operator, ...]
    dtypes: tuple[str, ...]
    forms: tuple[str, ...]
    samples: int
    rungs: tuple[Rung, ...]
    check: Rung | None = None
    eager: OnTarget | None = None
    limit: float = LIMIT

    @property
    def is_whole(self) -> bool:
        """Are all forms and samples asked for that a plain `conformance ops` asks for? What is known to be wrong must show then."""
        return self.samples >= SAMPLES and set(LAYOUT_FORMS) <= set(self.forms)

    def cell(self, stage: str, operator: Operator, dtype: str) -> str:
        return f"{stage}/{self.backend}/{self.target}/{operator.cell_name(dtype)}"

    def cells(self) -> list[str]:
        """Every cell of the sweep."""
        return [
            cell
            for task in self._tasks(frozenset())
            for dtype in task.dtypes
            for cell in self._stages(task.operator, dtype)
        ]

    def _stages(self, operator: Operator, dtype: str) -> list[str]:
        return [self.cell(rung.stage.value, operator, dtype) for rung in self.rungs]

    def _tasks(self, done: frozenset[str]) -> Iterator[Task]:
        for operator in self.operators:
            names = [name for name in operator.dtypes() if name in self.dtypes]
            errors_with = names[:1]  # the calls that eager refuses are examined once, beside the first dtype
            left = [name for name in names if not all(cell in done for cell in self._stages(operator, name))]
            for at in range(0, len(left), DTYPES_A_PROCESS):
                dtypes = tuple(left[at : at + DTYPES_A_PROCESS])
                yield Task(
                    operator, dtypes, self.forms, self.samples, self.rungs, dtypes[:1] == tuple(errors_with),
                    check=self.check, eager=self.eager,
                )  # fmt: skip

    def run(self, workers: int, done: Sequence[str] = ()) -> Iterator[Results]:
        """The results of each task as it ends. `done`: cells that a record has already."""
        work = [_Work(task) for task in self._tasks(frozenset(done))]
        pool = Pool(workers, self.limit, MEMORY)
        for event in pool.run([_job(index, one) for index, one in enumerate(work)]):
            one = work[event.job.key]
            if event.said is not None:
                one.hear(event.said)
            elif event.death is not None:
                one.bury(event.death)
                pool.add(_job(event.job.key, one))  # next, while the others go on: it is slow, being one call a compile
            else:
                yield Results(self, one.task, one.judged, one.skipped)


@dataclass
class _Work:
    """A task with what was heard of it so far."""

    task: Task
    judged: dict[tuple[str, Key], Judged] = field(default_factory=dict)
    skipped: dict[Key, str] = field(default_factory=dict)
    begun: Begun = field(default_factory=lambda: Begun("", ()))
    deaths: int = 0

    def hear(self, said: Any) -> None:
        if isinstance(said, Begun):
            self.begun = said
        elif isinstance(said, Skipped):
            self.skipped[said.key] = said.reason
        elif isinstance(said, Judged):
            self.judged[said.rung, said.key] = said

    def bury(self, death: Death) -> None:
        """Prepare the task for another process: without what is done, and with the suspects one by one."""
        self.deaths += 1
        rung, keys = self.begun.rung, self.begun.keys
        suspects = frozenset(keys) | self.task.alone
        if not rung:
            self.skipped |= dict.fromkeys(keys, f"eager itself: {death.reason}")
        elif not death.timeout and "exit code" in death.reason:  # an exception of ours: no word about the compiler
            self.skipped |= dict.fromkeys(keys, f"the examination failed: {death.reason}")
        elif len(keys) == 1 or self.deaths > 50:
            kind = Kind.TIMEOUT if death.timeout else Kind.CRASH
            for key in keys:
                self.judged[rung, key] = Judged(rung, key, CRASH, [(kind.value, death.reason)])
        done = {("", key) for key in self.skipped} | set(self.judged)
        done |= {(f"wrong {name}", key) for (name, key), one in self.judged.items() if one.findings}
        self.task = replace(self.task, done=frozenset(done), alone=suspects)
        self.begun = Begun("", ())


def _job(index: int, work: _Work) -> Job:
    return Job(index, examine, (work.task,))

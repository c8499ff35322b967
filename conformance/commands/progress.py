"""The progress of a run: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from conformance.plan import Plan, PlannedCase
from conformance.session import Begun, Ended

EVERY = 20.0  # seconds between two lines where there is no terminal


class RunProgress:
    """Counts cells as their cases end. No thread draws the bar: processes are forked meanwhile."""

    def __init__(self, plan: Plan, cases: Sequence[PlannedCase], console: Console) -> None:
        self.console, self.total = console, len(plan.cells)
        self.seen = self.total - sum(len(case.stages) for case in cases)
        self.unexpected = self.reused = 0
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=console, auto_refresh=False)
        self.task = self.bar.add_task("importing", total=self.total, completed=self.seen)
        self.last = time.monotonic()

    def __enter__(self) -> RunProgress:
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.bar.stop()
        if self.reused:
            told = f"{self.reused} of {self.total} cells are reused: nothing changed since they were measured (--fresh measures them again)"
            self.console.print(told, style="dim")

    def tell(self, event: Ended | Begun) -> None:
        if isinstance(event, Ended):
            self.seen += len(event.results)
            self.reused += len(event.results) if event.reused else 0
            self.unexpected += sum(result.unexpected for result in event.results.values())
        bad = f"  {self.unexpected} unexpected" if self.unexpected else ""
        if self.console.is_terminal:
            self.bar.update(self.task, completed=self.seen, description=f"{event.case}{bad}", refresh=True)
        elif isinstance(event, Ended) and not event.reused and time.monotonic() - self.last > EVERY:
            self.last = time.monotonic()
            self.console.print(f"{self.seen}/{self.total} cells,{bad or ' 0 unexpected'}", style="dim")

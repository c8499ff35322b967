"""A history as Markdown, JSON, a page, and in the terminal. Cells that never changed are counted, not listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from conformance.report.ascii_fallback import Shown
from conformance.report.history import History, Trend
from conformance.report.markdown import about, code, escape, table
from conformance.report.page import describe, render
from conformance.report.style import LOOKS, look

MOST = 2_000
SECTIONS = (
    ("flaky", "Flaky", "the verdict changed though nothing else did: same versions, machine, suite and micrograph"),
    ("changed", "Changed with a version", "the verdict is another since that version"),
    ("moved", "Moved", "the verdict stayed, a number did not (kernels, matches)"),
)


def history_markdown(history: History, most: int = 200) -> str:
    return "\n".join(_markdown(history, most)) + "\n"


def _markdown(history: History, most: int) -> Iterator[str]:
    yield f"# History\n\n**{escape(history.sentence(), 400)}.**\n"
    for run in history.runs:
        yield f"- {about(run)}"
    for problem in history.problems[:20]:
        yield f"- ⚠ {escape(problem)}"
    for name, heading, meaning in SECTIONS:
        trends: list[Trend] = getattr(history, name)
        if trends:
            yield f"\n## {heading}: {len(trends)} cells\n\n{meaning}.\n"
            rows = [[code("/".join(trend.place), 160), signs(trend), escape(_said(trend, name))] for trend in trends[:most]]
            yield from table(["cell", "over time", "what"], rows)
            if len(trends) > most:
                yield f"\nand {len(trends) - most} more."


def signs(trend: Trend) -> str:
    return "`" + "".join(look(point.verdict).sign for point in trend.points[-40:]) + "`"


def _said(trend: Trend, section: str) -> str:
    if section != "moved":
        return trend.summary()
    said: list[str] = []
    last = None
    for point in trend.points:
        if point.number is not None and point.number != last:
            said.append(f"{point.version} {point.number:g}")
            last = point.number
    return ", ".join(said)


def history_json(history: History) -> dict[str, Any]:
    return {
        "schema": "conformance-history/1",
        "runs": [describe(run) for run in history.runs],
        "problems": history.problems,
        "cells": len(history.trends),
        **{
            name: [
                {
                    "cell": "/".join(trend.place),
                    "points": [[p.version, p.verdict, p.number, round(p.seconds, 4), p.run] for p in trend.points],
                }
                for trend in getattr(history, name)
            ]
            for name, _, _ in SECTIONS
        },
    }


def history_page(history: History) -> str:
    sections = [(name, heading, meaning, getattr(history, name)) for name, heading, meaning in SECTIONS]
    return render(
        "history.html",
        title="History",
        history=history,
        sections=sections,
        runs=[describe(run) for run in history.runs],
        look=look,
        known=LOOKS,
        spark=spark,
        said=_said,
        most=MOST,
    )


def spark(trend: Trend, width: int = 120, height: int = 22) -> dict[str, Any] | None:
    """The points of a small plot; None where there is nothing to draw."""
    numbers = [(index, point.number) for index, point in enumerate(trend.points) if point.number is not None]
    if len(numbers) < 2:
        return None
    high = max(1.0, *(number for _, number in numbers))
    step = (width - 8) / max(len(trend.points) - 1, 1)
    places = [(round(4 + index * step, 1), round(height - 4 - number / high * (height - 8), 1)) for index, number in numbers]
    path = "M" + "L".join(f"{x} {y}" for x, y in places)
    return {"width": width, "height": height, "path": path, "points": places, "last": f"{numbers[-1][1]:g}"}


class HistoryTable(Shown):
    def __init__(self, history: History, most: int = 20) -> None:
        self.history = history
        self.most = most

    def parts(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        for problem in self.history.problems[:20]:
            yield Text(f"! {problem}", style="yellow")
        for name, heading, meaning in SECTIONS:
            trends: list[Trend] = getattr(self.history, name)
            if not trends:
                continue
            yield Text(f"\n{heading}: {len(trends)} cells", style="bold")
            yield Text(meaning, style="dim")
            grid = Table.grid(padding=(0, 2))
            for trend in trends[: self.most]:
                strip = Text()
                for point in trend.points[-20:]:
                    seen = look(point.verdict)
                    strip.append(seen.ascii if options.ascii_only else seen.sign, seen.style)
                grid.add_row(Text("/".join(trend.place), overflow="fold"), strip, Text(_said(trend, name), style="dim"))
            yield grid
            if len(trends) > self.most:
                yield Text(f"and {len(trends) - self.most} more: -o history.html shows them all", style="dim")
        yield Text(f"\n{self.history.sentence()}", style="bold")

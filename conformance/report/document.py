"""What a report says, as blocks; and the two ways to write them down: Markdown, and a terminal of any width.

Every text goes through `sanitize` here, so that nothing a record holds is markup, a mention, or a control character.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from conformance import sanitize
from conformance.report.ascii_fallback import Shown

LIMIT = 300
_SPECIAL = re.compile(r"([\\`*_\[\]#|~>@])")
PIPE_WIDTH = 200


class Span(NamedTuple):
    """A piece of a line. form: `code`, `strong`, `soft`, `link`, or a style of the terminal. limit: in characters."""

    text: Any
    form: str = ""
    limit: int = LIMIT


Cell = str | Span | Sequence["str | Span"]


@dataclass(frozen=True)
class Heading:
    text: Cell
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    text: Cell
    bullet: str = ""


@dataclass(frozen=True)
class Table:
    """cut: the column that is shortened where a row is too long for the terminal; without one, rows are wrapped."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    right: frozenset[int] = frozenset()
    cut: int | None = None


@dataclass(frozen=True)
class Code:
    text: str
    language: str = ""


@dataclass(frozen=True)
class Fold:
    """Blocks that a reader opens when they are wanted; in the terminal they follow, indented."""

    title: Cell
    blocks: Sequence[Block]


Block = Heading | Paragraph | Table | Code | Fold


def spans(cell: Cell) -> list[Span]:
    parts = [cell] if isinstance(cell, (str, Span)) else cell
    return [part if isinstance(part, Span) else Span(part) for part in parts]


# --------------------------------------------------------------------------------------------- Markdown


def markdown(blocks: Iterable[Block], limit: int | None = None) -> str:
    """The blocks as Markdown of at most `limit` characters; how many were left out is said at the end."""
    texts = ["\n".join(_markdown(block)) for block in blocks]
    if limit is None or sum(map(len, texts)) + 2 * len(texts) <= limit:
        return "\n\n".join(texts) + "\n"
    kept: list[str] = []
    room = limit - 100
    for text in texts:
        room -= len(text) + 2
        if room < 0:
            break
        kept.append(text)
    return (
        "\n\n".join([*kept, f"… {len(texts) - len(kept)} more parts do not fit here; `-o diff.html` has them all."])
        + "\n"
    )


def _markdown(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"{'#' * block.level} {_inline(block.text)}"
    elif isinstance(block, Paragraph):
        yield f"{'- ' if block.bullet else ''}{_inline(block.text)}"
    elif isinstance(block, Table):
        yield "| " + " | ".join(map(escape, block.head)) + " |"
        yield "|" + "|".join(" ---: " if index in block.right else " --- " for index in range(len(block.head))) + "|"
        for row in block.rows:
            yield "| " + " | ".join(map(_inline, row)) + " |"
    elif isinstance(block, Code):
        fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", block.text)), default=0))
        yield f"{fence}{block.language}\n{sanitize.text(block.text).rstrip()}\n{fence}"
    else:
        yield f"<details><summary>{_html(block.title)}</summary>\n"
        yield "\n\n".join("\n".join(_markdown(inner)) for inner in block.blocks)
        yield "\n</details>"


def _inline(cell: Cell) -> str:
    written = []
    for text, form, limit in spans(cell):
        if form == "code":
            written.append(code(text, limit))
        elif form == "link":
            address = sanitize.link(text)
            written.append(f"<{address}>" if address and not re.search(r"[<>\s]", address) else escape(text, limit))
        elif form == "strong":
            written.append(f"**{escape(text, limit)}**")
        else:
            written.append(_spaced(text, escape(text, limit)))
    return "".join(written)


def _spaced(raw: Any, written: str) -> str:
    """Spaces around a piece separate it from its neighbours."""
    raw = str(raw)
    return f"{' ' * raw.startswith(' ')}{written}{' ' * (raw.endswith(' ') and bool(written))}"


def _html(cell: Cell) -> str:
    return "".join(_spaced(span.text, _entities(sanitize.line(span.text, span.limit))) for span in spans(cell))


def _entities(text: str) -> str:
    return re.sub(r"[&<>@`*_\[\]|~\\]", lambda found: f"&#{ord(found[0])};", text)


def escape(value: object, limit: int = LIMIT) -> str:
    """Prose: nothing in it is markup, a mention or a link."""
    text = sanitize.line(value, limit).replace("&", "&amp;").replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\1", text).replace("\\@", "@\u200b")


def code(value: object, limit: int = LIMIT) -> str:
    """A code span, also where the text holds backticks or the bars of a table."""
    text = sanitize.line(value, limit).replace("|", "\\|")
    if not text:
        return ""
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(map(len, re.findall(r"`+", text))))
    return f"{fence} {text} {fence}"


# --------------------------------------------------------------------------------------------- terminal

_FORMS = {"code": "", "strong": "bold", "soft": "dim", "link": "underline"}


def console(stderr: bool = False) -> Console:
    """The terminal; where the output goes to a file or a pipe, wide enough that no name is cut."""
    piped = not (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr, width=PIPE_WIDTH if piped and not os.environ.get("COLUMNS") else None, highlight=False
    )


@dataclass(frozen=True)
class Document(Shown):
    """Blocks for a rich console."""

    blocks: Sequence[Block]

    def parts(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        for index, block in enumerate(self.blocks):
            if isinstance(block, Heading) and index:
                yield Text("")
            yield from _terminal(block, options.max_width)


def _terminal(block: Block, width: int) -> Iterator[RenderableType]:
    if isinstance(block, Heading):
        yield _text(block.text, "bold")
    elif isinstance(block, Paragraph):
        yield _text([f"{block.bullet} ", *spans(block.text)] if block.bullet else block.text)
    elif isinstance(block, Table):
        yield _rich_table(block, width)
    elif isinstance(block, Code):
        for line in sanitize.text(block.text).rstrip().split("\n"):
            style = {"+": "green", "-": "red"}.get(line[:1], "dim") if block.language == "diff" else ""
            yield Text(f"    {line}", style=style, overflow="fold")
    else:
        yield _text(block.title)
        yield from (
            Padding(part, (0, 0, 0, 2), expand=False) for inner in block.blocks for part in _terminal(inner, width - 2)
        )


def _rich_table(block: Table, width: int) -> RichTable:
    rows = [[_text(cell) for cell in row] for row in block.rows]
    if block.cut is not None:
        wide = [
            max(len(text) for text in column) for column in zip([Text(word) for word in block.head], *rows, strict=True)
        ]
        room = max(20, width - sum(wide) - 2 * len(wide) + wide[block.cut])
        for row in rows:
            row[block.cut].truncate(room, overflow="ellipsis")
    table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_header=any(block.head))
    for index, heading in enumerate(block.head):
        justify: Any = "right" if index in block.right else "left"
        table.add_column(Text(heading), justify=justify, no_wrap=block.cut is not None, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _text(cell: Cell, style: str = "") -> Text:
    text = Text(style=style, overflow="fold")
    for piece, form, limit in spans(cell):
        text.append(_spaced(piece, sanitize.line(piece, limit)), _FORMS.get(form, form))
    return text

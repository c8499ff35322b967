"""What is printed by way of rich, on terminals that cannot show all of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment


class Shown(ABC):
    """A renderable of parts. Where the terminal has no Unicode, every character that it cannot show becomes one that it
    can."""

    @abstractmethod
    def parts(self, options: ConsoleOptions) -> Iterator[RenderableType]: ...

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in self.parts(options):
            if not options.ascii_only:
                yield part
                continue
            for segment in console.render(part, options):
                yield segment if segment.control else Segment(_ascii(segment.text), segment.style)


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    return text.translate(_LIKE).encode("ascii", "replace").decode()


_LIKE = str.maketrans(
    {"→": ">", "·": "/", "…": "~", "−": "-", "–": "-", "✓": "+", "✗": "X", "↩": "<", "▲": "^", "▼": "v"}
)

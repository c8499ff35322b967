"""GitHub workflow commands: `::error …` lines that GitHub shows beside the code."""

from collections.abc import Iterator
from pathlib import Path

from conformance import record, sanitize
from conformance.report.address import address
from conformance.report.matrix import verdict
from conformance.report.style import counted, rank
from conformance.report.totals import Total


def annotations(run: record.Run, limit: int = 10, micrographs: Path | None = None) -> Iterator[str]:
    """A line an unexpected cell, at most `limit` (GitHub shows ten of a step), then one with the totals.
    With the folder of micrographs, an annotation stands at the class of its micrograph."""
    bad = [(name, line) for name, line in run.cells.items() if record.is_unexpected(line)]
    bad.sort(key=lambda pair: (rank(verdict(pair[1])), pair[0]))
    for name, line in bad[:limit]:
        place = address(name)
        where = _source(place.micrograph, micrographs) if place is not None and micrographs is not None else {}
        message = f"{verdict(line)}: {sanitize.line(line.get('reason'), 400)}".rstrip(": ")
        yield command("error", message, title=sanitize.name(name), **where)
    if len(bad) > limit:
        yield command(
            "warning",
            f"and {counted(len(bad) - limit, 'more unexpected cell')}; the matrix has them all",
            title="conformance",
        )
    yield command("notice", Total.of(verdict(line) for line in run.cells.values()).sentence(), title="conformance")


def command(level: str, message: str, **properties: str) -> str:
    """No text of a record can end the line, start another command, or add a property."""
    given = ",".join(
        f"{key}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items()
    )
    return f"::{level} {given}::{_data(message)}"


def _data(text: str) -> str:
    return sanitize.line(text).replace("%", "%25")


def _source(micrograph: str, folder: Path) -> dict[str, str]:
    """Where the class of a micrograph stands; found by its name, since importing it would need torch."""
    family, _, name = micrograph.partition(".")
    if not family.isidentifier():
        return {}
    file = folder / f"{family}.py"
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for number, line in enumerate(lines, 1):
        if line.startswith("class ") and line[6:].partition("(")[0].lower() == name.replace("_", "").lower():
            return {"file": file.as_posix(), "line": str(number)}
    return {"file": file.as_posix()}

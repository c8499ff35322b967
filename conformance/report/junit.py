"""JUnit XML, for the CI systems that read it: a suite a backend and target, a case a cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from xml.etree import ElementTree as xml

from conformance.report import sanitize
from conformance.report.address import Address, address
from conformance.report.load import findings, seconds
from conformance.report.matrix import verdict
from conformance.report.style import look

DETAIL = 4_000


class Run(Protocol):
    @property
    def header(self) -> Mapping[str, Any]: ...

    @property
    def cells(self) -> Mapping[str, Mapping[str, Any]]: ...


def write_junit(run: Run, path: Path | str) -> None:
    """`error` and `timeout` are errors, other unexpected verdicts failures; what was not judged, or failed as expected, is
    skipped with its reason. So no fallback and nothing unavailable is ever counted as passed."""
    by_column: dict[tuple[str, str], list[tuple[Address, Mapping[str, Any]]]] = defaultdict(list)
    for name, line in run.cells.items():
        if (place := address(name)) is not None:
            by_column[place.column].append((place, line))
    root = xml.Element("testsuites", name="conformance")
    for (backend, target), cells in sorted(by_column.items()):
        root.append(_suite(f"{backend}/{target}", cells, sanitize.name(run.header.get("started"))))
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _suite(name: str, cells: list[tuple[Address, Mapping[str, Any]]], started: str) -> xml.Element:
    suite = xml.Element("testsuite", name=_xml(name), timestamp=_xml(started))
    tags = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    counts = dict.fromkeys(tags.values(), 0)
    total = 0.0
    for place, line in sorted(cells, key=lambda cell: cell[0].order()):
        case = xml.SubElement(suite, "testcase", classname=_xml(f"{place.backend}.{place.target}.{place.stage}"))
        case.set("name", _xml(place.micrograph))
        case.set("time", f"{seconds(line):.3f}")
        total += seconds(line)
        if (tag := _tag(verdict(line))) is not None:
            counts[tags[tag]] += 1
            _outcome(case, tag, line)
    suite.set("tests", str(len(cells)))
    suite.set("time", f"{total:.3f}")
    for key, count in counts.items():
        suite.set(key, str(count))
    return suite


def _tag(word: str) -> str | None:
    if word == "pass":
        return None
    if word in ("error", "timeout"):
        return "error"
    return "failure" if look(word).unexpected else "skipped"


def _outcome(case: xml.Element, tag: str, line: Mapping[str, Any]) -> None:
    word = verdict(line)
    outcome = xml.SubElement(case, tag, message=_xml(f"{word}: {sanitize.line(line.get('reason'), 400)}".rstrip(": ")))
    if tag != "skipped":
        outcome.set("type", _xml(word))
    said = [f"{check} {kind}: {detail}" for kind, check, detail in findings(line)]
    if url := sanitize.link(line.get("url")):
        said.append(url)
    if said:
        outcome.text = _xml(sanitize.text("\n".join(said), DETAIL))


def _xml(text: str) -> str:
    """XML has no way to write some characters at all; `clean` has already replaced them, tab and newline aside."""
    return sanitize.text(text)

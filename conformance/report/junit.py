"""JUnit XML of a matrix, for the CI systems that read it: a suite a backend and target, a case a cell."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

from conformance import record, sanitize
from conformance.report.address import Address, address
from conformance.report.load import findings
from conformance.report.matrix import verdict

DETAIL = 4_000
TAGS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def write_junit(run: record.Run, path: Path | str) -> None:
    """`error` and `timeout` are errors, other unexpected verdicts failures; what was not judged, or failed as expected,
    is skipped with its reason. So no fallback and nothing unavailable is ever counted as passed."""
    cells = sorted(
        ((place, line) for name, line in run.cells.items() if (place := address(name)) is not None),
        key=lambda cell: (cell[0].column, cell[0].order()),
    )
    root = xml.Element("testsuites", name="conformance")
    for column, members in groupby(cells, key=lambda cell: cell[0].column):
        suite = xml.SubElement(
            root, "testsuite", name="/".join(column), timestamp=sanitize.name(run.header.get("started"))
        )
        for place, line in members:
            _case(suite, place, line)
        times = [float(case.get("time", "0")) for case in suite]
        suite.set("tests", str(len(suite)))
        suite.set("time", f"{sum(times):.3f}")
        for tag, count in TAGS.items():
            suite.set(count, str(len(suite.findall(f"testcase/{tag}"))))
    for count in ("tests", *TAGS.values()):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(suite: xml.Element, place: Address, line: Mapping[str, Any]) -> None:
    """Texts are clean already: XML has no way to write some characters at all."""
    classname = f"{place.backend}.{place.target}.{place.stage}"
    case = xml.SubElement(suite, "testcase", classname=classname, name=place.micrograph, time=f"{line['seconds']:.3f}")
    word = verdict(line)
    if word == "pass":
        return
    tag = "error" if word in ("error", "timeout") else "failure" if record.is_unexpected(line) else "skipped"
    outcome = xml.SubElement(case, tag, message=f"{word}: {sanitize.line(line['reason'], 400)}".rstrip(": "))
    if tag != "skipped":
        outcome.set("type", word)
    details = [f"{check} {kind}: {detail}" for kind, check, detail in findings(line)] + [sanitize.link(line.get("url"))]
    outcome.text = sanitize.text("\n".join(filter(None, details)), DETAIL)

"""Micrographs after public reports: reports are named in one form, and expectations link to the micrograph's own."""

from __future__ import annotations

import fnmatch
import re

from conformance import expectations
from conformance.library import load

REPORT = re.compile(r"[\w.-]+/[\w.-]+#\d+")


def upstream() -> dict[str, tuple[str, ...]]:
    return {name: cls.upstream for name, cls in load().items() if name.startswith("upstream.")}


def test_reports_are_named_in_one_form() -> None:
    odd = {name: report for name, reports in upstream().items() for report in reports if not REPORT.fullmatch(report)}
    assert not odd


def test_no_two_families_have_a_micrograph_of_one_class_name_and_report() -> None:
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    for name, reports in upstream().items():
        other = seen.setdefault((name.rsplit(".", 1)[1], reports), name)
        assert other == name or not reports


def test_what_is_expected_links_to_the_report() -> None:
    """An entry whose link is an issue of a micrograph that names reports links to one of them."""
    reports = upstream()
    for entry in expectations.load().entries:
        wanted = entry.micrograph
        number = re.search(r"/(?:issues|pull)/(\d+)$", entry.url)
        for name in ([wanted] if wanted in reports else fnmatch.filter(reports, wanted)) if number else ():
            if reports[name]:
                assert number[1] in {report.rpartition("#")[2] for report in reports[name]}, entry

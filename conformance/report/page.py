"""The records as one HTML page. It is one file with all its evidence, and loads nothing from elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from conformance.report.columns import encode, order
from conformance.report.evidence import Evidence, json_text
from conformance.report.load import no_collection
from conformance.report.matrix import Column, Matrix
from conformance.report.moved import describe
from conformance.report.style import LETTERS
from conformance.report.views import VIEWS, Context

HOME = Path(__file__).parent
SCRIPTS = ("data", "state", "filters", "grid", "highlight", "compare", "graph", "charts", "panel", "views", "export")


def write_page(
    matrix: Matrix,
    path: Path,
    title: str = "Which stage moved",
    *,
    texts: bool = True,
    any_revision: bool = False,
    pairs: Sequence[tuple[Column, Column]] = (),
    opens: str = "",
    only_changed: bool = False,
) -> None:
    """Write the page. texts: with graphs and code. pairs: the columns to compare, where it is not for the reader to
    choose. opens: the view to open on (default: what moved). only_changed: of the operators, those that differ between
    versions, until the reader asks for all."""
    with no_collection():
        placed = order(matrix)
        evidence = Evidence(texts)
        cells = {key: index for index, (_, key, _) in enumerate(placed)}
        rows = {name: index for index, name in enumerate(matrix.rows)}
        context = Context(matrix, cells, rows, evidence, any_revision, pairs)
        views = [(view, data) for view in VIEWS if (data := view.data(context)) is not None]
        data = {
            **_head(matrix, title),
            **encode(matrix, placed),
            "chunk": evidence.facts([entry for _, _, entry in placed]),
        }
        data["views"] = {view.name: {"label": view.label, "data": found} for view, found in views}
        data |= {"opens": opens, "only_changed": only_changed}
        data["problems"] = [*matrix.problems[:100], *evidence.problems()]
        scripts = [*(f"{name}.js" for name in SCRIPTS), *(view.script for view in VIEWS), "main.js"]
        path.write_text(
            render("page.html", title=title, data=data, scripts=scripts, pieces=evidence.pieces), encoding="utf-8"
        )


def render(template: str, *, data: Any, **values: Any) -> str:
    """The nonce is a digest of the page's data, so that no text of a record can carry it."""
    encoded = json_text(data)
    nonce = hashlib.sha256(encoded.encode()).hexdigest()[:24]
    return _environment().get_template(template).render(nonce=nonce, data=Markup(encoded), **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HOME / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static"] = static
    return environment


def static(name: str) -> Markup:
    """A style sheet or script of our own, as it is."""
    return Markup((HOME / "static" / name).read_text(encoding="utf-8"))


def _head(matrix: Matrix, title: str) -> dict[str, Any]:
    latest, recorded = set(matrix.latest()), matrix.recorded()
    return {
        "schema": "conformance-page/2",
        "title": title,
        "runs": [describe(run) for run in matrix.runs],
        "stages": matrix.stages,
        "letters": [LETTERS.get(stage, stage[:1]) for stage in matrix.stages],
        "columns": [
            [column.backend, column.target, column.version, column.machine, int(column in latest)]
            for column in matrix.columns
        ],
        "recorded": [list(recorded[column]) for column in matrix.columns],
        "rows": matrix.rows,
    }

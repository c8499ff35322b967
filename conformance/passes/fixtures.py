"""A pytest fixture for a pass's own repository: `compiled_with(pass, micrograph)`.

from conformance.passes.fixtures import compiled_with

def test_it_matches_once(compiled_with):
    made = compiled_with("passes/add_rms_norm.py:add_rms_norm", "norm.add_rmsnorm")
    assert made.matches == {"add_then_norm": 1}, made.why()
    assert made.serious() == []
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import unknown
from conformance.library import load as load_micrographs
from conformance.micrograph import Micrograph
from conformance.passes.examination import Depth, Examination, examine
from conformance.passes.subject import Subject, load, subject_of
from conformance.target import Target

Compile = Callable[..., Examination]
_subjects: dict[tuple[str, str | None], Subject] = {}


@pytest.fixture
def compiled_with(request: pytest.FixtureRequest) -> Compile:
    """Compile a micrograph with a pass and examine what it did.

    The pass is `FILE.py:OBJECT`, relative to the test's own folder, or the object itself. The micrograph is one of the suite's by its name,
    one of `folder` (relative, too; one or several), or a class."""
    here = request.path.parent

    def compile_it(
        what: Any,
        micrograph: str | type[Micrograph],
        *,
        folder: str | Sequence[str] | None = None,
        target: str = "cpu",
        hook: str | None = None,
        deep: bool = False,
    ) -> Examination:
        subject = _subject(what, here, hook)
        folders = [folder] if isinstance(folder, str) else folder or []
        cls = micrograph if isinstance(micrograph, type) else _named(micrograph, [here / each for each in folders])
        return examine(subject, cls, Target.parse(target), Depth(variants=deep, neighbours=deep, cost=deep))

    return compile_it


def _subject(what: Any, here: Path, hook: str | None) -> Subject:
    if not isinstance(what, str):
        return subject_of(what, hook=hook)
    file, _, name = what.rpartition(":")
    key = (f"{(here / file).resolve()}:{name}", hook)
    if key not in _subjects:  # patterns are traced when a pass is loaded: once is enough
        _subjects[key] = load(*key)
    return _subjects[key]


def _named(name: str, folders: Sequence[Path]) -> type[Micrograph]:
    library = dict(load_micrographs())
    for folder in folders:
        library |= load_micrographs(folder)
    if name not in library:
        raise unknown("micrograph", name, library)
    return library[name]

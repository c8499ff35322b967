"""Which files of micrographs are read, and what a run says of expectations for the others."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from conformance import library
from conformance.errors import UsageError
from conformance.plan import Plan, select_cells
from conformance.session import Session


@pytest.mark.parametrize(
    ("glob", "family", "may"),
    [
        ("*", "norm", True),
        ("norm.*", "norm", True),
        ("norm.rms*", "norm", True),
        ("norm.rmsnorm", "norm", True),
        ("norm.rmsnorm", "norms", False),
        ("upstream.m*", "upstream.mutation", True),
        ("upstream.m*", "upstream.overlap", False),
        ("[nm]*.rmsnorm", "norm", True),
    ],
)
def test_what_stands_before_a_wildcard_says_which_families_a_glob_may_select(glob: str, family: str, may: bool) -> None:
    assert library.may_select(glob, family) is may


def test_only_files_that_may_hold_what_is_asked_for_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(f"{library.PACKAGE}.")]:  # another test's
        monkeypatch.delitem(sys.modules, name)
    found = library.load(globs=["norm.rms*", "views.identity"])
    assert {name.split(".")[0] for name in found} == {"norm", "views"}
    assert {name for name in sys.modules if name.startswith(f"{library.PACKAGE}.")} == {
        f"{library.PACKAGE}.norm",
        f"{library.PACKAGE}.views",
    }


def test_every_glob_finds_in_its_families_what_it_finds_in_all() -> None:
    everything = library.load()
    for glob in ("norm.*", "*.rmsnorm", "upstream.mutation.*", "up*", "upstream.[a-c]*.*"):
        assert [n for n in everything if fnmatchcase(n, glob)] == [
            n for n in library.load(globs=[glob]) if fnmatchcase(n, glob)
        ]


@pytest.mark.parametrize(
    ("names", "stale"),
    [
        ("fusion/inductor/cpu/norm.no_such", True),
        ("fusion/inductor/cpu/nowhere.at_all", True),
        ("fusion/inductor/cpu/norm.rmsnorm", False),
        ("fusion/inductor/cpu/views.not_loaded_so_not_known", False),
    ],
)
def test_an_expectation_for_no_micrograph_is_refused_as_far_as_it_is_known(
    names: str, stale: bool, tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text(f'[[expect]]\ncell = "{names}"\nkind = "wrong_result"\nurl = "a"\nwhy = "b"\n')
    plan = Plan(select_cells(["eager"], globs=["norm.rmsnorm"]), None, str(tmp_path), baseline=False)
    if stale:
        with pytest.raises(UsageError, match="matches no cell"):
            Session(plan)
    else:
        Session(plan)


def test_a_session_that_is_told_its_cases_later_knows_every_micrograph() -> None:
    """As a sweep's worker is."""
    assert Session(Plan((), None, None, baseline=False)).micrographs.keys() == library.load().keys()

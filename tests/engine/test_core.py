"""What a run takes that names no micrographs."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import core, library
from conformance.micrograph import Micrograph
from conformance.plan import select_cells
from conformance.report.core import NEIGHBOURS, Recorded, chosen

LIBRARY = library.load()


def micrographs(cells: object) -> list[str]:
    return list(dict.fromkeys(cell.micrograph for cell in cells))  # type: ignore[attr-defined]


def test_the_list_names_micrographs_that_exist_and_all_plain_ones() -> None:
    names = core.names()
    assert names <= LIBRARY.keys()
    assert {name for name in LIBRARY if not name.startswith(NEIGHBOURS)} <= names
    assert {name for name, cls in LIBRARY.items() if cls.backends and "inductor" not in cls.backends} <= names


def test_a_run_takes_the_core_and_all_when_asked() -> None:
    taken = micrographs(select_cells(["inductor"], target_names=["cpu"]))
    everything = micrographs(select_cells(["inductor"], target_names=["cpu"], globs=["*"]))
    assert set(taken) == core.names() & set(everything)
    assert len(everything) > 3 * len(taken)


def test_of_a_folder_of_ones_own_all_are_taken(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from conformance.contract import Contract\nfrom conformance.inputs import Tensor\n"
        "from conformance.micrograph import Micrograph\n\n\nclass Doubled(Micrograph):\n"
        '    """Twice."""\n\n    inputs = (Tensor("4"),)\n    contract = Contract()\n\n'
        "    def forward(self, x):\n        return x * 2\n"
    )
    assert micrographs(select_cells(["inductor"], target_names=["cpu"], folder=str(tmp_path))) == ["own.doubled"]


def test_what_shows_more_in_a_second_comes_first() -> None:
    family = sorted(name for name in LIBRARY if name.startswith("upstream.layout."))[:3]
    mine = {name: LIBRARY[name] for name in family}
    finding = ("runtime", "wrong_result")
    dear, cheap, silent = family
    seen = {
        dear: Recorded({"a": 9.0}, {"2.11.0"}, {finding}),
        cheap: Recorded({"a": 0.5}, {"2.11.0"}, {finding}),
        silent: Recorded({"a": 0.1}),
    }
    names = chosen(mine, seen, 2.0)
    assert cheap in names
    assert dear not in names


def test_what_is_kept_stays_and_what_it_shows_is_not_added_again() -> None:
    family = sorted(name for name in LIBRARY if name.startswith("upstream.layout."))[:3]
    mine = {name: LIBRARY[name] for name in family}
    kept, same, other = family
    seen = {
        kept: Recorded({"a": 9.0}, {"2.11.0"}, {("runtime", "wrong_result")}),
        same: Recorded({"a": 0.1}, set(), {("runtime", "wrong_result")}),
        other: Recorded({"a": 0.5}, {"2.11.0"}, {("capture", "crash")}),
    }
    names = chosen({name: _without_reports(cls) for name, cls in mine.items()}, seen, 20.0, keep=[kept])
    assert names == sorted([kept, other])


def _without_reports(cls: type[Micrograph]) -> type[Micrograph]:
    return type(cls.__name__, (cls,), {"upstream": ()})


@pytest.mark.parametrize("written", ['Tensor(("n", "n"))', 'Tensor("n", "n")'])
def test_an_input_that_is_written_wrongly_is_named(written: str, tmp_path: Path) -> None:
    from conformance.errors import UsageError

    (tmp_path / "own.py").write_text(
        "from conformance.contract import Contract\nfrom conformance.inputs import Tensor\n"
        "from conformance.micrograph import Micrograph\n\n\nclass Doubled(Micrograph):\n"
        f'    """Twice."""\n\n    dims = {{"n": 4}}\n    inputs = ({written},)\n    contract = Contract()\n\n'
        "    def forward(self, x):\n        return x * 2\n"
    )
    with pytest.raises(UsageError, match=r"input 0 of Doubled is Tensor\(.*; write Tensor\("):
        library.load(tmp_path)

"""Expectations made from the records of several releases."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance import expectations
from conformance.errors import UsageError
from conformance.triage.commands import expect
from conformance.triage.expect_records import changes, fact_of, parse, render

RELEASES = ("2.11.0", "2.12.0", "2.13.0", "2.15.0")
CELL = "codegen/inductor/cpu/upstream.mutation.one"


def records(
    tmp_path: Path,
    *states: str,
    cell: str = CELL,
    upstream: tuple[str, ...] = ("pytorch/pytorch#7",),
    machine: str = "x86_64",
) -> list[Path]:
    """A record a release: `.` passes, a kind fails, `crash` is an error, `blocked` and `fallback` are verdicts."""
    made = []
    for release, state in zip(RELEASES, states, strict=True):
        verdict = {".": "pass", "crash": "error", "blocked": "blocked", "fallback": "fallback"}.get(state, "fail")
        kinds = [] if verdict in ("pass", "blocked", "fallback") else [state]
        findings = [{"kind": kind, "check": "LAD001", "detail": f"seen on {release}"} for kind in kinds]
        line = {"cell": cell, "verdict": verdict, "reason": "", "findings": findings, "upstream": list(upstream)}
        path = tmp_path / f"{release}-{len(list(tmp_path.iterdir()))}.jsonl"
        header = {"schema": "conformance/1", "suite": "x", "env": {"torch": f"{release}+cpu", "machine": machine}}
        path.write_text(json.dumps(header) + "\n" + json.dumps(line) + "\n")
        made.append(path)
    return made


def written(folder: Path, made: list[Path], **options: str) -> list[expectations.Expectation]:
    folder.mkdir(exist_ok=True)
    changed, _ = changes(made, folder, options.pop("globs", ("*",)), **options)
    for file, text in changed.items():
        file.write_text(text, "utf-8")
    return expectations.load(folder).entries


def test_machines_are_named_where_they_disagree(tmp_path: Path) -> None:
    """Code for one processor has the defect, code for the other has not; of 2.12 and 2.13 the other machine says nothing."""
    x86 = records(tmp_path, "wrong_result", "wrong_result", "wrong_result", "wrong_result")
    other = records(tmp_path, "wrong_result", "blocked", "blocked", ".", machine="aarch64")
    entries = written(tmp_path / "e", [*x86, *other])
    assert [entry.when for entry in entries] == [
        "torch>=2.11,<2.15; machine == aarch64",
        "torch>=2.11,<2.16; machine == x86_64",
    ]
    assert written(tmp_path / "e", [*other, *x86]) == entries
    assert not any(entry.holds({"torch": "2.15.0", "machine": "aarch64"}) for entry in entries)


def test_machines_that_agree_are_not_named(tmp_path: Path) -> None:
    x86 = records(tmp_path, "wrong_result", "wrong_result", ".", ".")
    other = records(tmp_path, "wrong_result", "blocked", "blocked", ".", machine="aarch64")
    assert [entry.when for entry in written(tmp_path / "e", [*x86, *other])] == ["torch>=2.11,<2.13"]


def test_an_entry_of_one_machine_becomes_one_of_that_machine(tmp_path: Path) -> None:
    """Words that a person wrote stay."""
    x86 = records(tmp_path, "wrong_result", "wrong_result", "wrong_result", "wrong_result")
    written(tmp_path / "e", x86, why="the vector code has it")
    entries = written(tmp_path / "e", [*x86, *records(tmp_path, ".", ".", ".", ".", machine="aarch64")])
    assert [(entry.when, entry.why) for entry in entries] == [
        ("torch>=2.11,<2.16; machine == x86_64", "the vector code has it")
    ]


@pytest.mark.parametrize(
    ("states", "whens"),
    [
        (("wrong_result", "wrong_result", ".", "."), ["torch>=2.11,<2.13"]),
        (("wrong_result",) * 4, ["torch>=2.11,<2.16"]),
        ((".", ".", "wrong_result", "wrong_result"), ["torch>=2.13,<2.16"]),
        (("wrong_result", ".", ".", "wrong_result"), ["torch>=2.11,<2.12", "torch>=2.15,<2.16"]),
        (("wrong_result", "blocked", "wrong_result", "."), ["torch>=2.11,<2.15"]),
    ],
)
def test_the_versions_are_those_that_show_it(tmp_path: Path, states: tuple[str, ...], whens: list[str]) -> None:
    entries = written(tmp_path / "e", records(tmp_path, *states))
    assert [entry.when for entry in entries] == whens
    for release, state in zip(RELEASES, states, strict=True):
        if state != "blocked":
            assert any(entry.holds({"torch": release}) for entry in entries) == (state != ".")


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    crash, wrong = written(tmp_path / "e", records(tmp_path, "crash", "crash", "wrong_result", "."))
    assert (crash.kind, crash.when, wrong.kind, wrong.when) == (
        "crash",
        "torch>=2.11,<2.13",
        "wrong_result",
        "torch>=2.13,<2.15",
    )
    assert (crash.url, crash.why) == ("https://github.com/pytorch/pytorch/issues/7", "seen on 2.12.0")


def test_a_fallback_that_is_expected_already_stays_one() -> None:
    line = {"cell": "codegen/inductor/cpu/python.one", "verdict": "xfail", "findings": []}
    assert fact_of(line) == 'verdict = "fallback"'


def test_a_fallback_is_expected_by_its_verdict(tmp_path: Path) -> None:
    (entry,) = written(tmp_path / "e", records(tmp_path, "fallback", ".", ".", "."))
    assert (entry.verdict, entry.kind) == ("fallback", "")


def test_what_a_person_wrote_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    written(folder, records(tmp_path, "wrong_result", "wrong_result", ".", "."))
    file = folder / "upstream_mutation.toml"
    text = (
        file.read_text()
        .replace("seen on 2.12.0", "the copy is made too late")
        .replace("[[expect]]", "# looked into\n[[expect]]")
    )
    file.write_text("# What is known.\n\n" + text)
    (entry,) = written(folder, records(tmp_path, "wrong_result", "wrong_result", "wrong_result", "."))
    assert (entry.why, entry.when) == ("the copy is made too late", "torch>=2.11,<2.15")
    assert file.read_text().startswith("# What is known.\n\n# looked into\n[[expect]]\n")


def test_a_condition_that_says_the_same_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    made = records(tmp_path, "wrong_result", "wrong_result", ".", ".")
    written(folder, made)
    file = folder / "upstream_mutation.toml"
    file.write_text(file.read_text().replace("torch>=2.11,<2.13", "torch<2.12.5"))
    assert changes(made, folder, ("*",)) == ({}, [])


def test_what_no_longer_fails_is_removed_and_what_was_not_measured_stays(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    written(folder, records(tmp_path, "wrong_result", ".", ".", "."))
    file = folder / "upstream_mutation.toml"
    file.write_text(
        file.read_text().replace(f'cell = "{CELL}"', f'cell = ["{CELL}", "codegen/inductor/cuda/upstream.mutation.*"]')
    )
    entries = written(folder, records(tmp_path, ".", ".", ".", "."))
    assert [entry.cell for entry in entries] == ["codegen/inductor/cuda/upstream.mutation.*"]


def test_the_link_and_the_words_hold_on_another_target_and_at_another_stage(tmp_path: Path) -> None:
    folder, seen = tmp_path / "e", ("wrong_result", "wrong_result", ".", ".")
    written(folder, records(tmp_path, *seen, upstream=()), link='repro = "reports/repros/one.py"', why="it is lost")
    for cell in (CELL.replace("/cpu/", "/cuda/"), CELL.replace("codegen/", "fusion/")):
        entries = written(folder, records(tmp_path, *seen, cell=cell, upstream=()))
        assert [(one.url, one.why) for one in entries if one.cell == cell] == [("reports/repros/one.py", "it is lost")]


def test_another_kind_or_micrograph_says_nothing_of_the_link(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    written(
        folder, records(tmp_path, "wrong_result", ".", ".", ".", upstream=()), link='repro = "reports/repros/one.py"'
    )
    other = records(tmp_path, "wrong_result", ".", ".", ".", cell=f"{CELL}_more", upstream=())
    crash = records(tmp_path, "crash", ".", ".", ".", cell=CELL.replace("/cpu/", "/cuda/"), upstream=())
    assert changes([*other, *crash], folder, ("*",))[1] == [f"{CELL}_more", CELL.replace("/cpu/", "/cuda/")]


def test_an_entry_is_of_every_described_gpu(tmp_path: Path) -> None:
    one, other = (
        records(tmp_path, *states, cell=CELL.replace("/cpu/", target))
        for target, states in (("/sm_90/", ("crash", ".", ".", ".")), ("/sm_120/", (".", "crash", ".", ".")))
    )
    (entry,) = written(tmp_path / "e", [*one, *other])
    assert (entry.cell, entry.when) == (CELL.replace("/cpu/", "/sm_*/"), "torch>=2.11,<2.13")


def test_an_entry_of_releases_that_were_not_recorded_stays(tmp_path: Path) -> None:
    folder, made = tmp_path / "e", records(tmp_path, "wrong_result", "wrong_result", ".", ".")
    written(folder, made)
    (entry,) = written(folder, made[2:])
    assert entry.when == "torch>=2.11,<2.13"


def test_a_cell_without_a_report_is_left_out_and_named(tmp_path: Path) -> None:
    made = records(tmp_path, "wrong_result", ".", ".", ".", upstream=())
    assert changes(made, tmp_path / "e", ("*",)) == ({}, [CELL])
    (entry,) = written(tmp_path / "e", made, link='repro = "reports/repros/one.py"')
    assert entry.url == "reports/repros/one.py"


def test_records_that_hold_nothing_of_it_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hold no cell of a micrograph"):
        changes(records(tmp_path, ".", ".", ".", "."), tmp_path, ("norm.*",))


def of_autodeploy(tmp_path: Path, version: str) -> Path:
    """A record of AutoDeploy of this version, in which one cell fails."""
    made = records(tmp_path, "wrong_result", ".", ".", ".", cell="postgrad/autodeploy/cpu/norm.one")[0]
    header, line = made.read_text().splitlines()
    env = {"torch": "2.11.0", "backends": {"autodeploy": {"autodeploy": version}}}
    made.write_text(json.dumps({**json.loads(header), "env": env}) + "\n" + line + "\n")
    return made


def test_an_expectation_from_a_release_candidate_holds_for_it(tmp_path: Path) -> None:
    (entry,) = written(tmp_path / "e", [of_autodeploy(tmp_path, "1.3.0rc17")])
    assert entry.holds({"autodeploy": "1.3.0rc17"}) and not entry.holds({"autodeploy": "1.2.0"})


def test_a_record_that_does_not_know_its_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="says 'unknown version' for autodeploy"):
        changes([of_autodeploy(tmp_path, "unknown version")], tmp_path / "e", ("*",))


def test_the_files_of_the_suite_are_read_and_written_without_loss() -> None:
    from conformance import paths

    for file in sorted(paths.expectations().glob("*.toml")):
        before = file.read_text("utf-8")
        head, entries, others = parse(before)
        assert tomllib.loads(render(head, entries, others)) == tomllib.loads(before)  # `[[known]]` as well
        again = parse(render(head, entries, others))
        assert (head, entries, others) == again and entries, file.name


def test_the_command_shows_the_change_and_asks(tmp_path: Path) -> None:
    made = [str(path) for path in records(tmp_path, "wrong_result", ".", ".", ".")]
    folder = tmp_path / "e"
    said = CliRunner().invoke(expect, [*made, "--folder", str(folder)], input="n\n", standalone_mode=False)
    assert f'+cell = "{CELL}"' in said.output and not folder.exists()
    CliRunner().invoke(expect, [*made, "--folder", str(folder), "--yes"], standalone_mode=False)
    assert len(expectations.load(folder).entries) == 1


def test_operators_are_told_apart_and_each_has_its_script(tmp_path: Path) -> None:
    scripts = tmp_path / "repros"
    scripts.mkdir()
    (scripts / "div_floor_rounding_wrong_result.py").touch()
    made: list[Path] = []
    for name in ("div.floor_rounding:float32", "div.floor_rounding:int64", "put:float32"):
        made += records(tmp_path, "wrong_result", ".", ".", ".", cell=f"runtime/inductor/cpu/ops.{name}", upstream=())
    changed, linkless = changes(made, tmp_path / "e", ("*",), scripts)
    ((file, text),) = changed.items()
    assert file.name == "inductor.toml"
    (entry,) = parse(text)[1]
    assert [cell.split("ops.")[1] for cell in entry.cells] == ["div.floor_rounding:float32", "div.floor_rounding:int64"]
    assert entry.link == f'repro = "{scripts / "div_floor_rounding_wrong_result.py"}"'
    assert linkless == ["runtime/inductor/cpu/ops.put:float32"]
    changed, linkless = changes(made, tmp_path / "e", ("*",), 'repro = "docs/measured/ops.md"')
    assert not linkless and len(parse(changed[tmp_path / "e" / "inductor.toml"])[1]) == 2


def test_a_fallback_that_nobody_minds_is_no_failure() -> None:
    line = {"verdict": "fallback", "findings": [], "unexpected": False}
    assert fact_of(line) == ""
    assert fact_of(line | {"unexpected": True}) == 'verdict = "fallback"'

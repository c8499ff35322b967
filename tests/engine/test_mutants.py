"""Mutants: what of a compiler's source a micrograph reaches, and whether it shows a change there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch._prims_common
import torch._refs

from conformance.cli import main
from conformance.errors import UsageError
from conformance.mutants import operators, reach, recompile, sources, survey, trial
from conformance.mutants.commands import mutants
from conformance.processes import in_fork
from conformance.report.core import reaching
from conformance.stage import Stage

REFS, COMMON = "_refs/__init__.py", "_prims_common/__init__.py"


@pytest.fixture
def few_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two files instead of hundreds: what is done to each is the same."""
    monkeypatch.setattr(sources, "files", lambda: (COMMON, REFS))
    reach.blocks.cache_clear()
    yield
    reach.blocks.cache_clear()


def sites(function: str, change: str) -> list[operators.Site]:
    return [site for site in operators.sites() if (site.function, site.change) == (function, change)]


def test_every_stage_has_files_and_what_dynamo_traces_is_left_alone() -> None:
    stages = {sources.stage_of(file) for file in sources.files()}
    assert stages == set(Stage)
    assert not [file for file in sources.files() if "polyfills" in file or "repro" in file]
    assert sources.stage_of("_inductor/fx_passes/post_grad.py") is Stage.POSTGRAD
    assert sources.stage_of("_functorch/_aot_autograd/autograd_cache.py") is Stage.CACHE
    assert sources.stage_of("nn/functional.py") is None


@pytest.mark.usefixtures("few_files")
def test_a_function_that_lives_gets_the_code_of_the_mutant_and_only_in_its_process() -> None:
    site = sites("same_shape", "comparison")[0]

    def asked() -> tuple[bool, bool]:
        recompile.put_in(operators.by_name(site.name))
        return torch._prims_common.same_shape((2, 3), (2, 3)), torch._prims_common.same_shape((2, 3), (2,))

    assert in_fork(asked) == (False, True)
    assert torch._prims_common.same_shape((2, 3), (2, 3))


@pytest.mark.usefixtures("few_files")
def test_a_condition_that_never_holds_asks_for_micrographs_that_come_into_it() -> None:
    never, always = (sites("same_shape", change)[0] for change in ("never", "always"))
    blocks = reach.blocks()
    assert blocks[never.needs].line > never.line
    assert blocks[always.needs].line < always.line
    assert always.spares == never.needs


@pytest.mark.usefixtures("few_files")
def test_logs_and_assertions_are_no_sites() -> None:
    for site in operators.sites():
        line = (sources.ROOT / site.file).read_text(encoding="utf-8").splitlines()[site.line - 1].strip()
        assert not line.startswith(("assert ", "raise ", "log.", "warnings."))


def test_a_name_that_is_no_mutant_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("nothing", f"{REFS}:1:0:dropped", "nn/functional.py:1:0:never"):
        with pytest.raises(SystemExit):
            main(["mutants", "show", name])
        assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(UsageError):
        operators.by_name(f"{REFS}:5:0:mended")


@pytest.mark.usefixtures("few_files")
def test_a_wrong_sign_in_layer_norm_is_found_and_nothing_where_nothing_is_changed(tmp_path: Path) -> None:
    known = survey.Survey(tmp_path / "survey.jsonl")
    for one in survey.survey(["norm.layer_norm", "pointwise.chain"], "inductor", "cpu", 1):
        assert isinstance(one, survey.Surveyed)
        assert one.right
        known.keep(one)
    surveyed = survey.Survey(tmp_path / "survey.jsonl").all("inductor", "cpu")
    assert [one.reached for one in surveyed] == [one.reached for one in known.known.values()]
    normed, chained = (
        next(one for one in surveyed if one.micrograph == name) for name in ("norm.layer_norm", "pointwise.chain")
    )
    wrong = [site for site in sites("_normalize", "sign") if "- mean" in line_of(site) and site.column > 4]
    assert wrong[0].needs in normed.reached - chained.reached

    trials = trial.drawn(surveyed, 1, 1, lambda site: site == wrong[0], 4) + trial.controls(surveyed, 1, 1, 2)
    assert trials[0].micrographs == ("norm.layer_norm",)
    answers = {answer.mutant: answer for answer in trial.run(trials, surveyed, "inductor", "cpu", 1)}
    found = answers[wrong[0].name]
    assert (found.found, found.kind, found.by) == ("decomposition", "wrong_result", "contract")
    assert found.right_stage()
    quiet = answers["nothing 0"]
    assert quiet.asked == 2
    assert not quiet.detected
    assert not quiet.unavailable


def line_of(site: operators.Site) -> str:
    return (sources.ROOT / site.file).read_text(encoding="utf-8").splitlines()[site.line - 1]


def test_the_core_is_given_what_reaches_most_a_second() -> None:
    def one(name: str, blocks: set[int], seconds: float, right: bool = True) -> survey.Surveyed:
        return survey.Surveyed(name, "inductor", "cpu", torch.__version__, 64, survey.bits(blocks, 64), seconds, right)

    base, first, second = (
        one("a", set(range(10)), 1.0),
        one("b", set(range(5, 30)), 2.0),
        one("c", set(range(5, 40)), 30.0),
    )
    wrong, small = one("d", set(range(40, 60)), 1.0, right=False), one("e", {60}, 0.1)
    all_of = [base, first, second, wrong, small]
    assert list(reaching(all_of, {"a"}, 10.0)) == ["b"]
    assert list(reaching(all_of, {"a"}, 100.0)) == ["b", "c"]


def test_the_command_has_its_parts() -> None:
    assert set(mutants.commands) == {"survey", "run", "score", "show", "unreached"}

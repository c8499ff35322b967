"""Two records compared: what counts, what it costs, which stage moved first, what belongs together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.report import facts
from conformance.report.commands import diff as diff_command
from conformance.report.diff import Diff, Swap, compare, sides
from conformance.report.document import markdown
from conformance.report.load import Loaded
from conformance.report.moved import COMMENT, diff_blocks, diff_json
from tests.support.samples import STAGES, Write, cell, compile_of, finding, header

RunOf = Callable[..., Loaded]
NAME = "fusion/inductor/cpu/norm.a"


def between(old: Loaded, new: Loaded, **options: Any) -> Diff:
    before, after, _ = sides(old, new)
    return compare(before, after, **options)


def ranks(run_of: RunOf, old: list[dict[str, Any]], new: list[dict[str, Any]], **head: Any) -> list[str]:
    return [
        cause.rank
        for cause in between(run_of("old.jsonl", old, torch="2.11.0"), run_of("new.jsonl", new, **head)).causes
    ]


def causes(diff: Diff) -> list[tuple[str, str, str, int]]:
    return [(cause.rank, cause.stage, cause.text, len(cause.compiles)) for cause in diff.causes]


# ----------------------------------------------------------------------------------------------- classes


@pytest.mark.parametrize(
    "old, new, rank",
    [
        ("pass", "fail", "wrong"),
        ("pass", "error", "wrong"),
        ("pass", "timeout", "wrong"),
        ("pass", "xfail", "wrong"),  # expected, but still wrong
        ("fallback", "fail", "wrong"),
        ("unsupported", "error", "wrong"),
        ("pass", "fallback", "lost"),  # a fallback is never a pass
        ("pass", "unsupported", "lost"),
        ("fail", "pass", "fixed"),
        ("xfail", "pass", "fixed"),
        ("xfail", "xpass", "fixed"),
        ("error", "fallback", "fixed"),  # no longer wrong
        ("fail", "error", "wrong"),  # fails in another way
    ],
)
def test_verdicts(run_of: RunOf, old: str, new: str, rank: str) -> None:
    assert ranks(run_of, [cell(NAME, old)], [cell(NAME, new)]) == [rank]


@pytest.mark.parametrize("old, new", [("pass", "xpass"), ("fail", "xfail"), ("xfail", "fail")])
def test_expectations_are_not_behaviour(run_of: RunOf, old: str, new: str) -> None:
    wrong = {"findings": [finding("wrong_result")]}
    assert ranks(run_of, [cell(NAME, old, **wrong)], [cell(NAME, new, **wrong)]) == []


@pytest.mark.parametrize(
    "kind, rank",
    [
        ("wrong_result", "wrong"),
        ("stale_cache", "wrong"),
        ("match_loss", "lost"),
        ("undecomposed", "lost"),
        ("unfused", "more"),
        ("graph_break", "more"),
    ],
)
def test_a_failure_costs_what_its_finding_costs(run_of: RunOf, kind: str, rank: str) -> None:
    assert ranks(run_of, [cell(NAME)], [cell(NAME, "fail", findings=[finding(kind)])]) == [rank]


@pytest.mark.parametrize(
    "old, new, rank",
    [
        ({"kernels": 1}, {"kernels": 2}, "more"),  # the same answer with one kernel more
        ({"kernels": 2}, {"kernels": 1}, "fewer"),
        ({"kernels": 1, "library": []}, {"kernels": 0, "library": ["bmm"]}, "code"),  # as many launches
        ({"kernels": 1, "library": []}, {"kernels": 1, "library": ["bmm"]}, "more"),
        ({"kernels": {"a": {"spills": 0}}}, {"kernels": {"b": {"spills": 8}}}, "more"),  # names of kernels are no fact
        ({"kernels": {"a": {"registers": 8}}}, {"kernels": {"b": {"registers": 8}}}, None),
        ({"temporaries": 1}, {"temporaries": 3}, "more"),
        ({"bytes_moved": 1024}, {"bytes_moved": 4096}, "more"),
        ({"recompiles": {"s": 1}}, {"recompiles": {"s": 2}}, "more"),
        ({"breaks": 0}, {"breaks": 1}, "more"),
        ({"engines": 1}, {"engines": 3}, "more"),
        ({"again": {"fx_hit": 1}}, {"again": {"fx_miss": 1}}, "more"),
        ({"matches": {"addmm": 1}}, {"matches": {"addmm": 0}}, "lost"),
        ({"matches": {"addmm": 1}}, {"matches": {}}, "lost"),
        ({"matches": {"addmm": 1}}, {"matches": {"addmm": 2}}, "fewer"),
        ({"passes": {"fuse": {"matches": 2}}}, {"passes": {"fuse": {"matches": 1}}}, "lost"),
        ({"ops_in_torch": {}}, {"ops_in_torch": {"aten.sort": 1}}, "lost"),
        ({"ops": {"aten.add": 1}}, {"ops": {"aten.mul": 1}}, "code"),
        ({"library": ["a", "b"]}, {"library": ["b", "a"]}, None),  # the order of a list is no fact
        ({"guards": {"TYPE_MATCH": 1}}, {"guards": {"TYPE_MATCH": 2}}, "bookkeeping"),
        ({"without_metadata": 0}, {"without_metadata": 1}, "bookkeeping"),
        ({"code_digest": "a"}, {"code_digest": "b"}, "bookkeeping"),
        ({"passes": 11}, {"passes": 17}, "bookkeeping"),
    ],
)
def test_observations_move_though_both_pass(
    run_of: RunOf, old: dict[str, Any], new: dict[str, Any], rank: str | None
) -> None:
    assert ranks(run_of, [cell(NAME, observation=old)], [cell(NAME, observation=new)]) == ([rank] if rank else [])


@pytest.mark.parametrize("fact", ["compile_seconds", "seconds", "engine_bytes", "plan_bytes", "wall_ms", "cache_path"])
def test_volatile_facts_do_not_count(run_of: RunOf, fact: str) -> None:
    assert ranks(run_of, [cell(NAME, observation={fact: 1})], [cell(NAME, observation={fact: 2})]) == []


# ----------------------------------------------------------------------------- only what the compiler did


@pytest.mark.parametrize(
    "old, new",
    [
        ({}, {"kernels": 2}),  # one side never recorded it
        ({"guarded": {"strides": True}}, {"guarded": {"strides": True, "gradients are on": True}}),
        ({"passes": {"a": {"matches": 1}}}, {"passes": {"a": {"matches": 1}, "b": {"matches": 1}}}),
        ({"rewritten": {}}, {"rewritten": {"linear": 0}}),  # zero of it
    ],
)
def test_a_fact_that_one_side_did_not_record_is_no_movement(
    run_of: RunOf, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert ranks(run_of, [cell(NAME, observation=old)], [cell(NAME, observation=new)]) == []


def test_what_could_not_be_compared_is_not_called_unmoved(run_of: RunOf) -> None:
    lines = compile_of("a.b", "inductor", "cpu")
    before = run_of("old.jsonl", lines, suite="one")
    other = between(before, run_of("new.jsonl", lines, suite="two"))
    assert "nothing could be compared" in markdown(diff_blocks(other))
    assert "nothing moved" in markdown(diff_blocks(between(before, run_of("new.jsonl", lines, suite="one"))))


def test_facts_of_two_producers_are_not_compared(run_of: RunOf) -> None:
    old, new = (
        compile_of("a.b", "inductor", "cpu", fusion={"kernels": 1}),
        compile_of("a.b", "inductor", "cpu", fusion={"kernels": 2}),
    )
    same = {f"{stage}/inductor": "p1" for stage in STAGES}
    before = run_of("old.jsonl", old, producers=same)
    other = between(before, run_of("new.jsonl", new, producers={**same, "fusion/inductor": "p2"}, suite="another"))
    assert other.causes == [] and other.compared == 6
    assert [(one.cells, one.example) for one in other.uncompared] == [(1, "fusion/inductor/cpu/a.b")]
    assert "two revisions of the suite" in other.uncompared[0].reason
    assert causes(between(before, run_of("new.jsonl", new, producers=same, suite="another"))) == [
        ("more", "fusion", "kernels 1 → 2", 1)
    ]


def test_before_schema_two_the_suite_is_the_producer(run_of: RunOf) -> None:
    old = run_of("old.jsonl", [cell(NAME, observation={"kernels": 1})], schema="conformance/1")
    new = run_of("new.jsonl", [cell(NAME, "fail", observation={"kernels": 2})], schema="conformance/1", suite="another")
    assert between(old, new).causes == [] and between(old, new).compared == 0
    assert [cause.rank for cause in between(old, new, any_revision=True).causes] == ["wrong"]


def test_a_changed_micrograph_is_not_the_compilers(run_of: RunOf) -> None:
    old, new = (
        cell(NAME, micrograph="d1", observation={"kernels": 1}),
        cell(NAME, micrograph="d2", observation={"kernels": 2}),
    )
    found = between(run_of("old.jsonl", [old]), run_of("new.jsonl", [new]))
    assert found.causes == [] and found.uncompared[0].reason == "the micrograph itself was changed"


@pytest.mark.parametrize(
    "old, new", [("pass", "unavailable"), ("unavailable", "fail"), ("pass", "blocked"), ("blocked", "blocked")]
)
def test_what_was_not_seen_is_not_compared(run_of: RunOf, old: str, new: str) -> None:
    found = between(
        run_of("old.jsonl", [cell(NAME, old)]), run_of("new.jsonl", [cell(NAME, new, reason="no GPU here")])
    )
    assert found.causes == [] and found.compared == 0 and len(found.uncompared) == 1


def test_a_stage_that_should_have_been_seen_is_lost(run_of: RunOf) -> None:
    gone = cell(NAME, "unavailable", reason="torch has no Scheduler.codegen", unexpected=True)
    assert ranks(run_of, [cell(NAME)], [gone]) == ["lost"]


def test_only_on_one_side(run_of: RunOf) -> None:
    found = between(
        run_of("old.jsonl", [cell(NAME)]), run_of("new.jsonl", [cell(NAME), cell("cache/inductor/cpu/norm.a")])
    )
    assert [(one.reason, one.cells) for one in found.uncompared] == [("only in the new record", 1)]


ARM = {"torch": "2.14.1", "machine": "aarch64", "cpu": "DEFAULT", "backends": {"inductor": {"torch": "2.14.1"}}}


def test_two_machines_differ_in_nothing_above_bookkeeping(run_of: RunOf) -> None:
    lines = [
        compile_of(
            "a.b",
            "inductor",
            "cpu",
            postgrad={"ops": {"mkldnn": n}},
            fusion={"kernels": n},
            codegen={"isa": str(n), "digest": str(n)},
        )
        for n in (1, 2)
    ]
    found = between(run_of("old.jsonl", lines[0]), run_of("new.jsonl", lines[1], env=ARM))
    assert {cause.rank for cause in found.causes} == {"bookkeeping"} and "two machines" in found.warnings[0]
    newer = {**ARM, "torch": "2.15.0", "backends": {"inductor": {"torch": "2.15.0"}}}
    moved = between(run_of("old.jsonl", lines[0]), run_of("new.jsonl", lines[1], env=newer))
    assert causes(moved)[0][:2] == ("code", "postgrad")  # decided before the machine matters


def test_in_one_environment_names_and_digests_count(run_of: RunOf) -> None:
    """Nothing but the compiler can have changed them."""
    old, new = (
        compile_of("a.b", "inductor", "cpu", capture={"guards": {}}),
        compile_of("a.b", "inductor", "cpu", capture={"guards": {"X": 1}}),
    )
    assert causes(between(run_of("old.jsonl", old), run_of("new.jsonl", new))) == [
        ("code", "capture", "guards.X 0 → 1", 1)
    ]
    identities = [cell("capture/inductor/cpu/a.b", observation={"guards": {"ID_MATCH": n}}) for n in (3, 5)]
    assert between(run_of("old.jsonl", identities[:1]), run_of("new.jsonl", identities[1:])).causes == []


# ------------------------------------------------------------------------------- the first stage, the cause

# A change of each stage, as two tables of facts (or verdicts) at the stage where it is made and what follows from it.
SEEDED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str], str, str]] = {
    "capture": ({"graphs": 1, "breaks": 0}, {"graphs": 2, "breaks": 1}, {}, "more", "breaks 0 → 1, graphs 1 → 2"),
    "decomposition": (
        {"ops": {"aten.rsqrt": 1}},
        {"ops": {"aten.sqrt": 1, "aten.reciprocal": 1}},
        {},
        "code",
        "aten.reciprocal 0 → 1, aten.rsqrt 1 → 0, aten.sqrt 0 → 1",
    ),
    "postgrad": ({"matches": {"attention": 1}}, {"matches": {"attention": 0}}, {}, "lost", "matches.attention 1 → 0"),
    "fusion": ({"kernels": 1}, {"kernels": 3}, {}, "more", "kernels 1 → 3"),
    "codegen": ({"vector_kernels": 2}, {"vector_kernels": 0}, {}, "lost", "vector_kernels 2 → 0"),
    "runtime": ({}, {}, {"runtime": "fail"}, "wrong", "pass → fail"),
    "cache": (
        {"again": {"fx_hit": 1}},
        {"again": {"fx_miss": 1}},
        {},
        "more",
        "again.fx_hit 1 → 0, again.fx_miss 0 → 1",
    ),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_change_of_one_stage_is_the_single_first_cause(run_of: RunOf, stage: str) -> None:
    """Every later stage has other code, as it has when an earlier one changed."""
    before, after, verdicts, rank, text = SEEDED[stage]
    later = STAGES[STAGES.index(stage) + 1 :]
    old, new = [], []
    for name in ("a.x", "a.y", "b.z"):
        old += compile_of(
            name, "inductor", "cpu", **{stage: before}, **{s: {"ops": {"aten.a": 1}, "digest": "1"} for s in later}
        )
        new += compile_of(
            name,
            "inductor",
            "cpu",
            verdicts,
            **{stage: after},
            **{s: {"ops": {name: 1}, "digest": name} for s in later},
        )
    old += compile_of("c.untouched", "inductor", "cpu")
    new += compile_of("c.untouched", "inductor", "cpu")
    assert causes(between(run_of("old.jsonl", old), run_of("new.jsonl", new))) == [(rank, stage, text, 3)]


def test_a_guard_more_or_a_new_digest_is_not_the_first_movement(run_of: RunOf) -> None:
    old = compile_of(
        "norm.a", "inductor", "cpu", capture={"guards": 10}, decomposition={"graph_digest": "a"}, fusion={"kernels": 1}
    )
    new = compile_of(
        "norm.a", "inductor", "cpu", capture={"guards": 11}, decomposition={"graph_digest": "b"}, fusion={"kernels": 2}
    )
    assert causes(between(run_of("old.jsonl", old, torch="2.11.0"), run_of("new.jsonl", new))) == [
        ("more", "fusion", "kernels 1 → 2", 1)
    ]


def test_loops_with_vectors_are_counted_only_where_the_loops_are_the_same(run_of: RunOf) -> None:
    """Fewer vector loops are a loss; after another fusion there may just be fewer loops. More may be more loops."""

    def compiled(vectors: int, groups: int) -> list[dict[str, Any]]:
        return compile_of("a.b", "inductor", "cpu", fusion={"ir_nodes": groups}, codegen={"vector_kernels": vectors})

    def moved(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return [(one.rank, one.stage) for one in between(run_of("o.jsonl", old), run_of("n.jsonl", new)).causes]

    assert moved(compiled(2, 4), compiled(1, 4)) == [("lost", "codegen")]
    assert moved(compiled(2, 4), compiled(1, 3)) == [("code", "fusion")]
    assert moved(compiled(1, 4), compiled(2, 4)) == [("code", "codegen")]


def test_hits_of_the_cache_are_counted_only_where_the_engines_are_the_same(run_of: RunOf) -> None:
    def compiled(engines: int, hits: int) -> list[dict[str, Any]]:
        return compile_of(
            "a.b", "torch_tensorrt", "sm_90", fusion={"engines": engines}, cache={"again": {"engine_hit": hits}}
        )

    assert ranks(run_of, compiled(2, 2), compiled(1, 1)) == ["fewer"]
    assert ranks(run_of, compiled(2, 2), compiled(2, 1)) == ["more"]


def test_what_it_led_to_is_said_with_the_first_stage(run_of: RunOf) -> None:
    blocked = dict.fromkeys(("codegen", "runtime", "cache"), "blocked")
    old = compile_of(
        "norm.a", "inductor", "cpu", decomposition={"ops": {"rsqrt": 1}}, postgrad={"matches": {"rmsnorm": 1}}
    )
    new = compile_of(
        "norm.a",
        "inductor",
        "cpu",
        {"fusion": "fail", **blocked},
        decomposition={"ops": {"pow": 1}},
        postgrad={"matches": {}},
    )
    new[3]["findings"] = [finding("wrong_result")]
    (cause,) = between(run_of("old.jsonl", old), run_of("new.jsonl", new)).causes
    assert (cause.rank, cause.stage) == ("wrong", "decomposition")
    assert cause.headline == "fusion pass → fail (wrong_result) after pow 0 → 1, rsqrt 1 → 0"


def test_one_cause_in_many_micrographs_is_one_entry(run_of: RunOf) -> None:
    old, new = [], []
    for name, before, after in (("a.x", 1, 2), ("a.y", 1, 3), ("b.z", 2, 4)):
        old += compile_of(name, "inductor", "cpu", fusion={"kernels": before})
        new += compile_of(name, "inductor", "cpu", fusion={"kernels": after})
    found = between(run_of("old.jsonl", old), run_of("new.jsonl", new))
    assert causes(found) == [("more", "fusion", "more kernels", 3)]


def test_a_micrograph_with_something_beside_the_cause_has_that_cause(run_of: RunOf) -> None:
    old, new = [], []
    for name, extra in (("a.x", {}), ("a.y", {}), ("a.z", {"aten.erf": 1})):
        old += compile_of(name, "inductor", "cpu", decomposition={"ops": {"aten.clone": 1}})
        new += compile_of(name, "inductor", "cpu", decomposition={"ops": extra})
    assert causes(between(run_of("old.jsonl", old), run_of("new.jsonl", new))) == [
        ("code", "decomposition", "aten.clone 1 → 0", 3)
    ]


def test_variants_of_one_compiler_share_a_cause_and_two_compilers_do_not(run_of: RunOf) -> None:
    versions = {
        "inductor": {"torch": "2.15.0"},
        "inductor_aot": {"torch": "2.15.0"},
        "torch_tensorrt": {"torch_tensorrt": "2.14"},
    }
    env = {"torch": "2.15.0", "backends": versions}
    sided = [[line for b in versions for line in compile_of("a.b", b, "cpu", fusion={"kernels": n})] for n in (1, 2)]
    found = between(run_of("old.jsonl", sided[0], env=env), run_of("new.jsonl", sided[1], env=env))
    assert [cause.columns for cause in found.causes] == [["inductor/cpu", "inductor_aot/cpu"], ["torch_tensorrt/cpu"]]


def test_failing_otherwise_is_told_by_kinds_and_exceptions(run_of: RunOf) -> None:
    def failing(kind: str, detail: str) -> list[dict[str, Any]]:
        return [cell(NAME, "fail", findings=[finding(kind, detail)])]

    assert ranks(run_of, failing("unfused", "a"), failing("wrong_result", "a")) == ["wrong"]
    assert ranks(run_of, failing("wrong_result", "0.13 off"), failing("wrong_result", "0.14 off")) == []
    assert ranks(run_of, failing("crash", "KeyError: 1"), failing("crash", "KeyError: 2")) == []
    found = between(
        run_of("o.jsonl", failing("crash", "KeyError: 1")),
        run_of("n.jsonl", failing("crash", "torch.X.LoweringException: y")),
    )
    assert found.causes[0].text == "fails otherwise: crash KeyError → crash LoweringException"


def test_new_failures_come_before_those_that_failed_otherwise(run_of: RunOf) -> None:
    old = [cell(f"runtime/inductor/cpu/a.x{k}", "fail", findings=[finding("unfused")]) for k in range(3)]
    new = [cell(f"runtime/inductor/cpu/a.x{k}", "fail", findings=[finding("wrong_result")]) for k in range(3)]
    old += [cell("runtime/inductor/cpu/b.new")]
    new += [cell("runtime/inductor/cpu/b.new", "fail", findings=[finding("wrong_result")])]
    assert causes(between(run_of("old.jsonl", old), run_of("new.jsonl", new))) == [
        ("wrong", "runtime", "pass → fail (wrong_result)", 1),
        ("wrong", "runtime", "fails otherwise: unfused → wrong_result", 3),
    ]


def test_mended_at_one_stage_and_wrong_at_a_later_one_is_not_fixed(run_of: RunOf) -> None:
    """The old failure did not let decomposition be reached; that it is wrong there is no fix for a user."""
    old = compile_of("norm.a", "inductor", "cpu", {"capture": "xfail", **dict.fromkeys(STAGES[1:], "blocked")})
    old[0]["findings"] = [finding("wrong_result", "0.1 off")]
    new = compile_of("norm.a", "inductor", "cpu", {"decomposition": "fail", **dict.fromkeys(STAGES[2:], "blocked")})
    new[1]["findings"] = [finding("lost_alias", "output 0 shares storage with input 0")]
    found = between(run_of("old.jsonl", old, torch="2.11.0"), run_of("new.jsonl", new, torch="2.15.0"))
    assert [(cause.rank, cause.stage, cause.otherwise) for cause in found.causes] == [("wrong", "capture", True)]
    assert found.causes[0].headline == "decomposition still wrong: lost_alias after xfail → pass (wrong_result)"


@pytest.mark.parametrize(
    ("now", "rank", "headline"),
    [
        ("crash", "code", "fails here now, in decomposition before: crash IndexError"),
        ("wrong_result", "wrong", "fails otherwise: crash IndexError → wrong_result"),
    ],
)
def test_what_was_wrong_at_a_later_stage_is_no_new_failure(run_of: RunOf, now: str, rank: str, headline: str) -> None:
    old = compile_of("norm.a", "inductor", "cpu", {"decomposition": "fail", **dict.fromkeys(STAGES[2:], "blocked")})
    old[1]["findings"] = [finding("crash", "IndexError: index 10 is out of range")]
    new = compile_of("norm.a", "inductor", "cpu", {"capture": "fail", **dict.fromkeys(STAGES[1:], "blocked")})
    new[0]["findings"] = [finding(now, "IndexError: index 10 is out of range" if now == "crash" else "0.1 off")]
    found = between(run_of("old.jsonl", old, torch="2.11.0"), run_of("new.jsonl", new, torch="2.15.0"))
    assert [(cause.rank, cause.stage, cause.headline) for cause in found.causes] == [(rank, "capture", headline)]


def test_an_expected_fallback_is_a_fallback_and_not_wrong(run_of: RunOf) -> None:
    old = [cell("fusion/torch_tensorrt/sm_90/norm.a")]
    new = [cell("fusion/torch_tensorrt/sm_90/norm.a", "xfail", said={"verdict": "fallback", "reason": "no converter"})]
    found = between(run_of("old.jsonl", old, torch="2.11.0"), run_of("new.jsonl", new, torch="2.14.1"))
    assert causes(found) == [("lost", "fusion", "pass → xfail (fallback)", 1)]


def test_backends_and_targets_can_be_compared_with_each_other(run_of: RunOf) -> None:
    inductor = run_of("old.jsonl", compile_of("norm.a", "inductor", "cpu"))
    tensorrt = run_of("new.jsonl", compile_of("norm.a", "torch_tensorrt", "cuda", {"fusion": "fallback"}))
    before, after, notes = sides(inductor, tensorrt)
    found = compare(before, after)
    assert found.compared == 7 and [cause.rank for cause in found.causes] == ["lost"]
    assert notes == ["compared across backends: inductor → torch_tensorrt", "compared across targets: cpu → cuda"]
    both = run_of(
        "both.jsonl",
        [*compile_of("norm.a", "inductor", "cpu"), *compile_of("norm.a", "torch_tensorrt", "cpu", {"cache": "fail"})],
    )
    before, after, _ = sides(both, both, backend=Swap.parse("inductor:torch_tensorrt"))
    assert [cause.stage for cause in compare(before, after).causes] == ["cache"]


def test_every_class_is_in_order() -> None:
    assert facts.CLASSES == ("wrong", "fixed", "lost", "more", "fewer", "code", "bookkeeping")


# ----------------------------------------------------------------------------------------------- command


@pytest.fixture
def pair(write: Write) -> tuple[Path, Path]:
    old = write("2.11.jsonl", compile_of("norm.a", "inductor", "cpu", fusion={"kernels": 1}), torch="2.11.0")
    return old, write("2.15.jsonl", compile_of("norm.a", "inductor", "cpu", fusion={"kernels": 2}), torch="2.15.0")


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(diff_command, [str(argument) for argument in arguments])


def test_fail_on_is_by_severity(pair: tuple[Path, Path]) -> None:
    assert invoke(*pair).exit_code == 0
    codes = {level: invoke(*pair, "--fail-on", level).exit_code for level in ("wrong", "lost", "more", "code", "any")}
    assert codes == {"wrong": 0, "lost": 0, "more": 1, "code": 1, "any": 1}
    assert invoke(pair[1], pair[0], "--fail-on", "code").exit_code == 0  # fewer kernels
    assert invoke(pair[1], pair[0], "--fail-on", "any").exit_code == 1


def test_an_expected_failure_does_not_fail(write: Write) -> None:
    old, new = write("old.jsonl", [cell(NAME)]), write("new.jsonl", [cell(NAME, "xfail")])
    assert invoke(old, new, "--fail-on", "wrong").exit_code == 0
    assert invoke(old, new, "--fail-on", "any").exit_code == 1


def test_formats(pair: tuple[Path, Path], tmp_path: Path) -> None:
    for suffix in ("html", "md", "json"):
        out = invoke(*pair, "-o", tmp_path / f"diff.{suffix}")
        assert out.exit_code == 0 and out.output.startswith(f"wrote {tmp_path}/diff.{suffix}: 1 cause, ")
    data = json.loads((tmp_path / "diff.json").read_text())
    (cause,) = data["causes"]
    assert (cause["class"], cause["stage"], cause["cause"], cause["example"]) == (
        "more",
        "fusion",
        "kernels 1 → 2",
        "fusion/inductor/cpu/norm.a",
    )
    assert cause["compiles"][0]["changes"][0]["facts"] == [["kernels", 1, 2, "more"]]
    assert data["classes"]["more"] == {"causes": 1, "compiles": 1} and data["cells"] == {
        "both": 7,
        "compared": 7,
        "same": 6,
    }


def test_markdown_fits_a_comment_and_counts_what_it_leaves_out(run_of: RunOf) -> None:
    old, new = [], []
    for k in range(800):
        old += [cell(f"fusion/inductor/cpu/f{k}.a")]
        new += [cell(f"fusion/inductor/cpu/f{k}.a", "fail", reason="x" * 150, findings=[finding(f"k{k}")])]
    found = between(run_of("old.jsonl", old), run_of("new.jsonl", new))
    text = markdown(diff_blocks(found), COMMENT)
    assert len(text) <= COMMENT and "more parts do not fit here" in text
    assert len(diff_json(found)["causes"]) == 800


def test_the_header_of_the_samples_is_of_this_schema() -> None:
    assert header()["schema"] == "conformance/2"

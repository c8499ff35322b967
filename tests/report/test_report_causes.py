"""What is one cause and what is two: known reports, and changes of a long span of releases that meet in one compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.report.diff import Diff, compare, sides
from conformance.report.document import markdown
from conformance.report.load import Loaded
from conformance.report.moved import diff_blocks
from tests.support.samples import compile_of, finding

RunOf = Callable[..., Loaded]
ISSUE = "https://github.com/pytorch/pytorch/issues/"
Facts = Mapping[str, Any]


def between(run_of: RunOf, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Diff:
    before, after, _ = sides(run_of("old.jsonl", old, torch="2.11.0"), run_of("new.jsonl", new, torch="2.15.0"))
    return compare(before, after)


def causes(diff: Diff) -> list[tuple[str, str, str, list[str]]]:
    return [(cause.rank, cause.stage, cause.text, cause.micrographs) for cause in diff.causes]


def known(micrograph: str, stage: str, url: str, kind: str = "wrong_result", **observed: Facts) -> list[dict[str, Any]]:
    """A compile that fails at one stage, as a report says."""
    lines = compile_of(micrograph, "inductor", "cpu", {stage: "xfail"}, **observed)
    for line in lines:
        if line["verdict"] == "xfail":
            line |= {"url": url, "findings": [finding(kind)]}
    return lines


def right(micrograph: str, **observed: Facts) -> list[dict[str, Any]]:
    return compile_of(micrograph, "inductor", "cpu", **observed)


# ----------------------------------------------------------------------------------------------- reports


def test_two_reports_are_two_causes_and_one_report_is_one(run_of: RunOf) -> None:
    names = {"a.x": f"{ISSUE}7", "a.y": f"{ISSUE}8", "a.z": f"{ISSUE}7"}
    old = [line for name, url in names.items() for line in known(name, "capture", url)]
    new = [line for name in names for line in right(name)]
    assert causes(between(run_of, old, new)) == [
        ("fixed", "capture", "xfail → pass (wrong_result) pytorch#7", ["a.x", "a.z"]),
        ("fixed", "capture", "xfail → pass (wrong_result) pytorch#8", ["a.y"]),
    ]


def test_one_report_that_shows_in_two_ways_is_one_cause(run_of: RunOf) -> None:
    new = known("a.x", "codegen", "reports/repros/a.py", "crash") + known("a.y", "codegen", "reports/repros/a.py")
    found = between(run_of, right("a.x") + right("a.y"), new)
    assert causes(found) == [("wrong", "codegen", "pass → xfail (wrong_result) a.py", ["a.x", "a.y"])]


def test_the_address_of_the_report_is_in_the_details(run_of: RunOf) -> None:
    found = between(run_of, known("a.x", "capture", f"{ISSUE}7"), right("a.x"))
    assert f"report: {ISSUE}7" in markdown(diff_blocks(found))


# ------------------------------------------------------------------------------------ two changes in one


def copies(number: int) -> Facts:
    return {"decomposition": {"ops": {"aten.clone": number} if number else {}}}


def test_a_fix_is_not_the_work_of_a_change_that_does_nothing_elsewhere(run_of: RunOf) -> None:
    old = known("a.x", "postgrad", f"{ISSUE}7", **copies(4)) + right("a.y", **copies(1))
    new = right("a.x", **copies(3)) + right("a.y", **copies(0))
    assert causes(between(run_of, old, new)) == [
        ("fixed", "postgrad", "xfail → pass (wrong_result) pytorch#7", ["a.x"]),
        ("code", "decomposition", "fewer aten.clone", ["a.x", "a.y"]),
    ]


def test_several_fixes_after_one_change_are_its_work(run_of: RunOf) -> None:
    """An op is kept whole, so that a later pass knows two of three writes; the third is not a pattern of its."""
    names = ("a.x", "a.y")
    old = [line for name in names for line in known(name, "postgrad", f"{ISSUE}7", **copies(1))] + right(
        "a.z", **copies(1)
    )
    new = [line for name in (*names, "a.z") for line in right(name, **copies(0))]
    assert causes(between(run_of, old, new)) == [
        ("fixed", "decomposition", "aten.clone 1 → 0", ["a.x", "a.y"]),
        ("code", "decomposition", "aten.clone 1 → 0", ["a.z"]),
    ]


def test_a_cost_stays_with_the_first_change_though_others_bear_it_without(run_of: RunOf) -> None:
    """One change of a decomposition, which costs a kernel in one of two micrographs."""
    old = right("a.x", **copies(1), fusion={"kernels": 1}) + right("a.y", **copies(1), fusion={"kernels": 1})
    new = right("a.x", **copies(0), fusion={"kernels": 2}) + right("a.y", **copies(0), fusion={"kernels": 1})
    assert causes(between(run_of, old, new)) == [
        ("more", "decomposition", "aten.clone 1 → 0", ["a.x"]),
        ("code", "decomposition", "aten.clone 1 → 0", ["a.y"]),
    ]


def test_a_cost_belongs_to_the_later_change_where_each_is_seen_alone(run_of: RunOf) -> None:
    """`a.both` has a copy fewer and a rewrite; `a.copy` shows that the one is free, `a.rewrite` that the other costs."""
    before: Facts = {"postgrad": {"ops": {}}, "fusion": {"kernels": 1}}
    after: Facts = {"postgrad": {"ops": {"aten.any": 1}}, "fusion": {"kernels": 2}}
    old = right("a.both", **copies(1), **before) + right("a.copy", **copies(1)) + right("a.rewrite", **before)
    new = right("a.both", **copies(0), **after) + right("a.copy", **copies(0)) + right("a.rewrite", **after)
    assert causes(between(run_of, old, new)) == [
        ("more", "postgrad", "aten.any 0 → 1", ["a.both", "a.rewrite"]),
        ("code", "decomposition", "aten.clone 1 → 0", ["a.both", "a.copy"]),
    ]


def test_a_failure_with_a_report_is_one_cause_whatever_moved_before_it(run_of: RunOf) -> None:
    """`a.x` shows it alone; in `a.y` an op is gone, in `a.z` a graph is added, which is a cost of its own."""
    before, after = {"capture": {"graphs": 1, "breaks": 0}}, {"capture": {"graphs": 2, "breaks": 1}}
    old = right("a.x") + right("a.y", **copies(1)) + right("a.z", **before)
    new = (
        known("a.x", "postgrad", f"{ISSUE}7")
        + known("a.y", "postgrad", f"{ISSUE}7", **copies(0))
        + known("a.z", "postgrad", f"{ISSUE}7", **after)
    )
    wrong, more, code = causes(between(run_of, old, new))
    assert wrong == ("wrong", "postgrad", "pass → xfail (wrong_result) pytorch#7", ["a.x", "a.y", "a.z"])
    assert (more[0], more[1], more[3]) == ("more", "capture", ["a.z"])
    assert code == ("code", "decomposition", "aten.clone 1 → 0", ["a.y"])


def test_a_failure_without_a_report_stays_with_what_moved_before_it(run_of: RunOf) -> None:
    old = right("a.x") + right("a.y", **copies(1))
    new = known("a.x", "postgrad", "") + known("a.y", "postgrad", "", **copies(0))
    assert [cause[:2] for cause in causes(between(run_of, old, new))] == [
        ("wrong", "decomposition"),
        ("wrong", "postgrad"),
    ]


def test_fewer_matches_of_a_graph_that_is_found_in_a_cache_are_no_loss(run_of: RunOf) -> None:
    """Of two equal graphs the second is found in a cache: it is not rewritten again."""
    old = right("a.x", postgrad={"matches": {"attention": 2}}, cache={"first": {"aot_miss": 2}})
    new = right("a.x", postgrad={"matches": {"attention": 1}}, cache={"first": {"aot_miss": 1, "aot_hit": 1}})
    assert [cause[:2] for cause in causes(between(run_of, old, new))] == [("fewer", "postgrad")]
    lost = right("a.x", postgrad={"matches": {"attention": 1}}, cache={"first": {"aot_miss": 2}})
    assert [cause[:2] for cause in causes(between(run_of, old, lost))] == [("lost", "postgrad")]


def test_more_bytes_alone_and_more_kernels_are_two_causes(run_of: RunOf) -> None:
    old = right("a.x", fusion={"kernels": 1, "bytes_moved": 8}) + right("a.y", fusion={"kernels": 1, "bytes_moved": 8})
    new = right("a.x", fusion={"kernels": 1, "bytes_moved": 9}) + right("a.y", fusion={"kernels": 2, "bytes_moved": 9})
    assert [cause[2:] for cause in causes(between(run_of, old, new))] == [
        ("bytes_moved 8 → 9", ["a.x"]),
        ("bytes_moved 8 → 9, kernels 1 → 2", ["a.y"]),
    ]


def test_what_costs_more_since_it_is_right_says_so(run_of: RunOf) -> None:
    """A copy is made so that the strides are eager's."""
    old = known("a.x", "codegen", "reports/repros/strides.py", fusion={"kernels": 0})
    (cause,) = between(run_of, old, right("a.x", fusion={"kernels": 1})).causes
    assert (cause.rank, cause.headline) == ("more", "kernels 0 → 1 (fixes strides.py)")


def test_more_bytes_with_fewer_nodes_are_another_cause(run_of: RunOf) -> None:
    old = right("a.x", fusion={"ir_nodes": 9, "bytes_moved": 8}) + right(
        "a.y", fusion={"ir_nodes": 2, "bytes_moved": 8}
    )
    new = right("a.x", fusion={"ir_nodes": 5, "bytes_moved": 9}) + right(
        "a.y", fusion={"ir_nodes": 2, "bytes_moved": 9}
    )
    assert [cause[2:] for cause in causes(between(run_of, old, new))] == [
        ("bytes_moved 8 → 9", ["a.y"]),
        ("bytes_moved 8 → 9, ir_nodes 9 → 5", ["a.x"]),
    ]


def test_registers_that_go_up_and_down_have_one_reason(run_of: RunOf) -> None:
    sided = [
        right("a.x", codegen={"kernels": {"k": {"registers": x}}})
        + right("a.y", codegen={"kernels": {"k": {"registers": y}}})
        for x, y in ((16, 16), (14, 18))
    ]
    assert causes(between(run_of, *sided)) == [("code", "codegen", "kernels.registers differs", ["a.x", "a.y"])]


def test_where_nothing_is_captured_any_more_nothing_costs_less(run_of: RunOf) -> None:
    """The compiler raises as eager does, before it has captured anything."""
    sided = [
        right("a.x", capture={"graphs": n, "ops": {"celu": n} if n else {}})
        + right("a.y", capture={"graphs": n, "ops": {"div": n} if n else {}})
        for n in (1, 0)
    ]
    assert causes(between(run_of, *sided)) == [("code", "capture", "graphs 1 → 0", ["a.x", "a.y"])]


def test_a_pass_that_did_nothing_did_nothing_whatever_it_says(run_of: RunOf) -> None:
    def state(word: str) -> list[dict[str, Any]]:
        return right("a.x", postgrad={"passes": {"match_rope": {"matches": 0, "state": word}}})

    assert [cause.rank for cause in between(run_of, state("skipped"), state("disabled")).causes] == ["bookkeeping"]
    assert [cause.rank for cause in between(run_of, state("skipped"), state("failed")).causes] == ["code"]


# -------------------------------------------------------------------------------- programs that did not run


def ladder(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for line in lines:
        line["findings"] = [one | {"check": "LAD001"} for one in line["findings"]]
    return lines


def test_a_failure_that_only_running_shows_is_not_new_where_the_old_program_did_not_run(run_of: RunOf) -> None:
    old = compile_of("a.x", "inductor", "sm_90", {"runtime": "unavailable"}) + compile_of("a.y", "inductor", "sm_90")
    new = ladder(known("a.x", "decomposition", f"{ISSUE}7", "lost_validation"))
    for line in new:
        line["cell"] = line["cell"].replace("cpu", "sm_90")
    new += compile_of("a.y", "inductor", "sm_90")
    found = between(run_of, old, new)
    assert found.causes == []
    assert ("the program as of this stage was not run in the old record", 1) in [one[:2] for one in found.uncompared]


def test_it_is_new_where_no_program_of_the_target_runs(run_of: RunOf) -> None:
    """A described GPU: programs are never run as a whole, and the stages all the same."""
    old = compile_of("a.x", "inductor", "cpu", {"runtime": "unavailable"})
    new = ladder(known("a.x", "decomposition", f"{ISSUE}7"))
    assert [cause.rank for cause in between(run_of, old, new).causes] == ["wrong"]


# ------------------------------------------------------------------------------------------ first screen


def test_the_first_screen_shows_some_of_every_class(run_of: RunOf) -> None:
    names = [f"a.n{k}" for k in range(60)]
    old = [line for name in names for line in known(name, "capture", f"{ISSUE}{name[3:]}9")]
    new = [line for name in names for line in right(name)]
    old += right("b.x", fusion={"kernels": 1}) + right("b.y", **copies(1))
    new += right("b.x", fusion={"kernels": 2}) + right("b.y", **copies(0))
    screen = markdown(diff_blocks(between(run_of, old, new))).partition("Details")[0]
    assert "60 causes, 60 compiles" in screen and "kernels 1 → 2" in screen and "aten.clone 1 → 0" in screen
    assert len([line for line in screen.splitlines() if line]) <= 40
    assert "see the details" in screen

"""What is wrong in a sweep is told once a cause."""

from __future__ import annotations

from typing import Any

from conformance.ops.causes import causes, without_values


def line(name: str, kind: str, detail: str, verdict: str = "fail") -> dict[str, Any]:
    return {
        "cell": f"decomposition/inductor/cpu/ops.{name}",
        "verdict": verdict,
        "findings": [{"kind": kind, "check": "OPS001", "detail": detail}],
    }


def test_one_refusal_of_many_operators_is_one_cause() -> None:
    lines = [
        line(
            f"{op}:{dtype}",
            "crash",
            f"plain, 1 of 2 calls: torch.{op}({dtype}[3, 4]): RuntimeError: no {dtype} kernel, size {n}",
        )
        for op in ("sin", "cos")
        for n, dtype in enumerate(("float16", "int8"))
    ]
    (cause,) = causes(lines)
    assert list(cause.operators) == ["sin", "cos"]
    assert list(cause.dtypes) == ["float16", "int8"]
    assert len(cause.cells) == 4
    assert str(cause).startswith("crash (decomposition): sin, cos; float16, int8\n    plain, 1 of 2 calls: torch.sin(")


def test_wrong_values_of_two_operators_are_two_causes() -> None:
    lines = [
        line(f"{op}:float32", "wrong_result", f"plain, 1 of 1 calls: torch.{op}(float32[3]): [0]: 1.0, not 2.0")
        for op in ("sin", "cos")
    ]
    assert [list(cause.operators) for cause in causes(lines)] == [["sin"], ["cos"]]


def test_what_is_expected_is_no_cause() -> None:
    assert causes([line("sin:int8", "crash", "plain, 1 of 1 calls: torch.sin(int8[3]): no", verdict="xfail")]) == []


def test_dtypes_numbers_and_the_stage_at_fault_are_left_out() -> None:
    said = without_values(
        "plain, 2 of 3 calls: torch.mv(float64[3, 3], float32[3]): dtype: eager torch.float64, compiled torch.float32; at fault: postgrad"
    )
    assert said == "dtype: eager dtype, compiled dtype"

"""The reducer of scripts, asked about programs that run in no time."""

from __future__ import annotations

import ast
import contextlib
import io

from conformance.reduce import ddmin, descend, one_by_one
from conformance.reduce.script import ScriptReducer, swept

TEXT = '''
"""What it shows."""
import math
import os


def helper(n):
    return n + 1


def broken(values, scale=1.0, *, name="x"):
    total = 0
    for value in values:
        if value > 2:
            total += value * scale
    print("total", total)
    return total


class Unused:
    pass


with open(os.devnull) as f:
    numbers = list(range(64))
result = broken(numbers, 3.0, name="y")
assert result < 100, f"too large: {helper(result)}"
'''


def fails(texts: list[str]) -> list[bool]:
    """Does each end with an AssertionError?"""
    found = []
    for text in texts:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, "candidate", "exec"), {"__name__": "__main__"})
            found.append(False)
        except AssertionError:
            found.append(True)
        except Exception:
            found.append(False)
    return found


def test_what_is_not_needed_goes() -> None:
    reduced = ScriptReducer(TEXT, fails, limit=30).run()
    assert fails([reduced.text]) == [True]
    assert reduced.after <= 8 < reduced.before
    for word in ("Unused", "helper", "math", "print", "What it shows"):
        assert word not in reduced.text
    assert "assert" in reduced.text and "64" not in reduced.text, reduced.text


def test_of_a_condition_the_part_that_matters_stays_and_no_module_stands_for_a_value() -> None:
    text = "import math\nx = 0\nassert not (math.isfinite(x) and x < 2)\n"
    assert ScriptReducer(text, fails, limit=30).run().text == "import math\nx = 0\nassert not math.isfinite(x)"


def test_a_script_that_does_not_fail_stays_as_it_is() -> None:
    reduced = ScriptReducer("x = 1\ny = 2\n", fails, limit=5).run()
    assert (reduced.text, reduced.before, reduced.after) == ("x = 1\ny = 2\n", 2, 2)


def test_one_cut_takes_all_that_nobody_reads() -> None:
    left = ast.unparse(swept(ast.parse(TEXT)))
    for word in ("Unused", "math", "print", "What it shows"):
        assert word not in left
    assert fails([left]) == [True]


def test_what_a_class_holds_and_what_is_called_is_not_swept_away() -> None:
    """A method is looked up by a name that may stand nowhere; a call may do more than give a value."""
    text = "class Layer:\n\n    def forward(self, x):\n        return x\nlayer = Layer()\nfirst = layer(1)"
    assert ast.unparse(swept(ast.parse(text))) == text


def test_as_many_are_asked_at_a_time_as_can_run() -> None:
    """One of the halves of the script reads a name that it does not define: it takes no place."""
    asked: list[int] = []

    def holds(texts: list[str]) -> list[bool]:
        asked.append(len(texts))
        return fails(texts)

    ScriptReducer("a = [1]\na.append(2)\na.append(3)\na.append(4)\nassert len(a) < 4\n", holds, limit=5).run()
    assert max(asked) == 2 and asked.count(1) <= asked.count(2)


def test_candidates_that_read_undefined_names_are_not_run() -> None:
    asked: list[str] = []

    def holds(texts: list[str]) -> list[bool]:
        asked.extend(texts)
        return fails(texts)

    ScriptReducer("size = 8\nother = 3\nassert size < 4\n", holds, limit=5).run()
    assert asked and not any("size < 4" in text and "size = " not in text for text in asked)


def test_the_smallest_set() -> None:
    def holds(groups: list[list[int]]) -> list[bool]:
        return [{3, 11} <= {*group} for group in groups]

    assert ddmin(list(range(16)), holds) == [3, 11]
    assert ddmin([5], holds) == [5]


def test_a_question_asked_one_by_one_is_not_asked_after_a_yes() -> None:
    asked: list[list[int]] = []

    def holds(group: list[int]) -> bool:
        asked.append(group)
        return 1 in group

    assert ddmin([1, 2, 3, 4], one_by_one(holds)) == [1]
    assert asked == [[1, 2], [1]]


def test_a_descent_takes_the_first_smaller_form_that_holds_and_goes_on_from_there() -> None:
    def smaller(n: int) -> list[int]:
        return [n // 2, n - 1] if n else []

    assert descend(100, smaller, lambda n: n >= 7, lambda: False) == 7
    assert descend(100, smaller, lambda n: n >= 7, lambda: True) == 100

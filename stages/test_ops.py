"""The operators of torch's own database as tests: every dtype, four layouts, decomposed and compiled. Opt-in: `pytest -m ops -k add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.ops.causes import causes
from conformance.ops.commands import carry_out, sweep_of

pytestmark = pytest.mark.ops


def test_compiled_as_eager_computes(swept: str, tmp_path: Path) -> None:
    done = carry_out(sweep_of("inductor", "cpu", (swept,)), tmp_path / "ops.jsonl", resume=False, workers=1)
    if found := causes(done.cells.values()):
        pytest.fail("\n".join(map(str, found)), pytrace=False)

"""What headless targets cost, against the C++ of the CPU and against each other, measured alternately in one run."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from conformance import oracle
from conformance.backends.base import Case
from conformance.headless.multi_target import generate
from conformance.library import load
from conformance.micrograph import Micrograph
from conformance.target import CPU, DEVICES, Target

ONE = Target.parse("sm_90")
FOUR = [Target.parse(name) for name in DEVICES]


def measure(names: list[str], rounds: int = 2) -> list[tuple[str, float, str]]:
    """Of each micrograph the best of some rounds."""
    from conformance import backends
    from conformance.target import CPU

    backends.get("inductor").preload(CPU)
    library = load()
    ways: dict[str, Callable[[type[Micrograph]], object]] = {
        "cpp": _cpp,
        "one": lambda micrograph: generate(micrograph, [ONE]),
        "four": lambda micrograph: generate(micrograph, FOUR),
    }
    taken: dict[str, dict[str, float]] = {}
    for name in names:
        spent = taken[name] = dict.fromkeys(ways, float("inf"))
        for turn in range(rounds + 1):  # the first warms up
            for way, make in ways.items():
                start = time.perf_counter()
                make(library[name])
                if turn:
                    spent[way] = min(spent[way], time.perf_counter() - start)
    return [
        *_rows(
            f"headless codegen of one target ÷ C++ compile for the CPU, {len(names)} micrographs",
            taken,
            "one",
            "cpp",
            "< 1",
        ),
        *_rows(f"headless codegen of {len(FOUR)} targets ÷ of one", taken, "four", "one", "< 2"),
    ]


def _rows(
    what: str, taken: dict[str, dict[str, float]], way: str, other: str, goal: str
) -> list[tuple[str, float, str]]:
    ratios = {name: spent[way] / spent[other] for name, spent in taken.items()}
    worst = max(ratios, key=ratios.__getitem__)
    whole = sum(spent[way] for spent in taken.values()) / sum(spent[other] for spent in taken.values())
    return [
        (f"{what}, median", statistics.median(ratios.values()), goal),
        ("  in all", whole, goal),
        (f"  worst: {worst}", ratios[worst], ""),
    ]


def _cpp(micrograph: type[Micrograph]) -> None:
    from conformance.backends.inductor.backend import InductorBackend
    from conformance.backends.inductor.compiled import empty_caches
    from conformance.backends.inductor.seam import seam

    case = Case(micrograph, CPU)
    seam.reset()
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as folder,
        empty_caches(Path(folder)),
        InductorBackend().settings(case),
    ):
        module = case.module()
        fn = torch.compile(module)
        oracle.run(lambda *x: fn(*InductorBackend().marked(case, x)), case.inputs(0), module)

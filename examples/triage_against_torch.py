"""The same seeded faults, found and shrunk by `conformance triage` and by torch's own CompilerBisector and minifier: times and answers.

python examples/triage_against_torch.py [FAULT …] [--minifier-limit SECONDS]

Each tool starts in the same process from compilers that are warm and caches that are empty; whatever a tool puts into its caches
serves that tool. Ours: stage, culprit and the reduced graph. Theirs: CompilerBisector for the subsystem, fx_minifier for the graph.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._inductor.utils import fresh_cache

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from conformance import oracle, seeded  # noqa: E402
from conformance.triage import pipeline, subject  # noqa: E402

HUNDRED = f"{ROOT}/tests/triage/hundred.py:Hundred"
# A fault and what it is looked for in: a hundred nodes where the fault is a single op's, else a micrograph that shows it.
CASES = {
    "tanh_written_as_sinh": HUNDRED,
    "locality_pass_flips_sign": HUNDRED,
    "fused_group_loses_a_member": "fusion/inductor/cpu/edge.nan_inf",
    "gelu_always_tanh": "decomposition/inductor/cpu/pointwise.chain",
    "where_swapped": "codegen/inductor/cpu/indexing.masked_fill",
}
# What CompilerBisector calls the stages that it knows. It has no word for code generation, fusion, runtime and cache.
THEIRS = {
    "decomposition": {"aot_eager_decomp_partition", "decomposition"},
    "postgrad": {"joint_graph_passes", "post_grad_passes", "pre_grad_passes"},
    "codegen": {"codegen"},
    "fusion": {"fusion", "scheduler"},
}


@dataclass
class Said:
    seconds: float
    stage: str
    text: str
    nodes: tuple[int, int] | None = None
    cpu: float = 0.0


def cpu() -> float:
    """Of this process and of the C++ compilers that it has waited for: on a busy machine a better measure than the clock."""
    return sum(os.times()[:4])


@dataclass
class Search:
    """Counts compiles, and stops the other tool when its time is up."""

    limit: float
    start: float = field(default_factory=time.monotonic)
    compiles: int = 0

    def wrong(self, module: Any, inputs: tuple[Any, ...]) -> bool:
        if time.monotonic() - self.start > self.limit:
            raise TimeoutError
        self.compiles += 1
        torch._dynamo.reset()
        ref = oracle.reference(module, inputs)
        return bool(oracle.compare(oracle.run(torch.compile(module), oracle.clone_inputs(inputs), module), ref))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start


def ours(source: str) -> Said:
    start = time.monotonic()
    found = pipeline.triage(subject.find(source), limit=180)
    seconds = time.monotonic() - start
    if found.first is None:
        return Said(seconds, "", "nothing found")
    steps = ", ".join(f"{name} {spent:.1f}" for name, spent in found.seconds.items())
    nodes = (found.reduced.before, found.reduced.nodes) if found.reduced else None
    culprit = f"{found.culprit.what} {found.culprit.name}" if found.culprit else ""
    return Said(
        seconds,
        found.first.cell.stage.value,
        f"{culprit} ({steps}{'; ' + found.unreduced if found.unreduced else ''})",
        nodes,
    )


def bisector(module: Any, inputs: tuple[Any, ...], limit: float) -> Said:
    from torch._inductor.compiler_bisector import CompilerBisector

    search = Search(limit)
    try:
        result = CompilerBisector.do_bisect(lambda: not search.wrong(module, inputs))
    except TimeoutError:
        return Said(search.seconds, "", f"stopped after {search.compiles} compiles")
    stage = (result.subsystem or result.backend) if result else "nothing"
    return Said(search.seconds, stage, f"{result.debug_info if result else ''}, {search.compiles} compiles")


def minifier(module: Any, inputs: tuple[Any, ...], limit: float) -> Said:
    from torch._functorch.fx_minifier import minifier as shrink
    from torch.fx.experimental.proxy_tensor import make_fx

    gm = make_fx(module)(*oracle.clone_inputs(inputs))
    search, before = Search(limit), _calls(gm)
    smallest, said = before, ""

    def fails(smaller: torch.fx.GraphModule, values: list[Any]) -> bool:
        nonlocal smallest
        wrong = search.wrong(smaller, tuple(values))
        if wrong:
            smallest = min(smallest, _calls(smaller))
        return wrong

    try:
        shrink(gm, list(inputs), fails, dump_state=lambda *_: None)
    except TimeoutError:
        said = "stopped at its limit, "
    except Exception as error:
        said = f"{type(error).__name__}: {str(error).splitlines()[0][:60]}, "
    return Said(search.seconds, "", f"{said}{search.compiles} compiles", (before, smallest))


def _calls(gm: torch.fx.GraphModule) -> int:
    return sum(node.op == "call_function" for node in gm.graph.nodes)


def warm() -> None:
    """What every first compile pays: imports, probes of the machine, the precompiled header."""
    with fresh_cache():
        torch.compile(lambda x: (x.sin() + 1).sum(0))(torch.randn(5, 70))


def compare(name: str, limit: float) -> tuple[Said, Said, Said]:
    fault, source = seeded.get(name), CASES[name]
    cls = subject.find(source).micrograph
    tools = {
        "conformance triage": lambda: ours(source),
        "CompilerBisector": lambda: bisector(cls.build(), cls.example(0), limit),
        "fx_minifier": lambda: minifier(cls.build(), cls.example(0), limit),
    }
    answers = []
    with fault:
        for tool, ask in tools.items():
            before = cpu()
            with fresh_cache():
                said = ask()
            said.cpu = cpu() - before
            _show(name, tool, said)
            answers.append(said)
    return answers[0], answers[1], answers[2]


def _show(fault: str, tool: str, said: Said) -> None:
    shrunk = f", {said.nodes[0]} nodes → {said.nodes[1]}" if said.nodes else ""
    print(f"{fault}: {tool}: {said.seconds:.1f} s: {said.stage} {said.text}{shrunk}", flush=True)


def row(name: str, mine: Said, theirs: Said, small: Said) -> str:
    stage = seeded.get(name).stage.value
    right = "" if theirs.stage in THEIRS.get(stage, ()) else " ✗"
    own = "" if mine.stage in {s.value for s in seeded.get(name).stages} else " ✗"
    ratio = mine.seconds / (theirs.seconds + small.seconds)
    nodes = [f"{said.nodes[0]} → {said.nodes[1]}" if said.nodes else "–" for said in (mine, small)]
    return (
        f"| {name} | {stage} | {mine.stage}{own}, {mine.text.split(' (')[0]} | {nodes[0]} | {mine.seconds:.0f} "
        f"| {theirs.stage}{right} | {nodes[1]} | {theirs.seconds:.0f} + {small.seconds:.0f} | 1/{1 / ratio:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("faults", nargs="*", default=list(CASES), metavar="FAULT")
    parser.add_argument("--minifier-limit", type=float, default=900.0, metavar="SECONDS")
    asked = parser.parse_args()
    warm()
    rows, spent, busy = [], [0.0, 0.0], [0.0, 0.0]
    for name in asked.faults:
        if name not in CASES:
            parser.error(f"no case for {name}; there are {', '.join(CASES)}")
        mine, theirs, small = compare(name, asked.minifier_limit)
        rows.append(row(name, mine, theirs, small))
        spent[0] += mine.seconds
        spent[1] += theirs.seconds + small.seconds
        busy[0] += mine.cpu
        busy[1] += theirs.cpu + small.cpu
    print("\n| fault | seeded in | triage | nodes | s | CompilerBisector | fx_minifier | s | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(rows))
    print(f"\nall: {spent[0]:.0f} s against {spent[1]:.0f} s, 1/{spent[1] / spent[0]:.1f}")
    print(f"CPU: {busy[0]:.0f} s against {busy[1]:.0f} s, 1/{busy[1] / busy[0]:.1f}")


if __name__ == "__main__":
    main()

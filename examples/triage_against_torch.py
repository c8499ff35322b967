"""The same fault, found and shrunk by `conformance triage` and by torch's own CompilerBisector and minifier: times and answers.

python examples/triage_against_torch.py [FAULT]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from conformance import oracle, seeded  # noqa: E402
from conformance.triage import ladder, subject  # noqa: E402


def ours(source: str) -> tuple[float, str]:
    start = time.monotonic()
    found = ladder.triage(subject.find(source), limit=180)
    assert found.first is not None, "the fault was not found"
    shrunk = f"{found.reduced.before} nodes → {found.reduced.nodes}, {found.reduced.tries} tries" if found.reduced else found.unreduced
    return time.monotonic() - start, f"{found.first.cell.stage}; {found.culprit.what if found.culprit else ''}; {shrunk}"


def bisector(cls: type) -> tuple[float, str]:
    from torch._inductor.compiler_bisector import CompilerBisector

    module, inputs = cls.build(), cls.example(0)
    ref = oracle.reference(module, inputs)
    calls = 0

    def right() -> bool:
        nonlocal calls
        calls += 1
        torch._dynamo.reset()
        return not oracle.compare(oracle.run(torch.compile(module), oracle.clone_inputs(inputs), module), ref)

    start = time.monotonic()
    result = CompilerBisector.do_bisect(right)
    return time.monotonic() - start, f"{result.subsystem if result else None} ({result.debug_info if result else ''}), {calls} compiles"


def minifier(cls: type) -> tuple[float, str]:
    from torch._functorch.fx_minifier import minifier as shrink
    from torch.fx.experimental.proxy_tensor import make_fx

    module, inputs = cls.build(), list(cls.example(0))
    gm = make_fx(module)(*inputs)
    calls, smallest = 0, len(gm.graph.nodes)

    def fails(smaller: torch.fx.GraphModule, values: list[torch.Tensor]) -> bool:
        nonlocal calls, smallest
        calls += 1
        torch._dynamo.reset()
        ref = oracle.reference(smaller, tuple(values))
        wrong = bool(oracle.compare(oracle.run(torch.compile(smaller), oracle.clone_inputs(tuple(values))), ref))
        if wrong:
            smallest = min(smallest, sum(n.op == "call_function" for n in smaller.graph.nodes))
        return wrong

    start = time.monotonic()
    shrink(gm, inputs, fails, dump_state=lambda *_: None)
    return time.monotonic() - start, f"{sum(n.op == 'call_function' for n in gm.graph.nodes)} nodes → {smallest}, {calls} compiles"


def main() -> None:
    fault = seeded.get(sys.argv[1] if len(sys.argv) > 1 else "tanh_written_as_sinh")
    source = f"{ROOT}/tests/triage/hundred.py:Hundred"
    cls = subject.find(source).micrograph
    with fault:
        print(f"{fault.name}, seeded in {fault.stage}")
        for name, run in (
            ("conformance triage", lambda: ours(source)),
            ("CompilerBisector", lambda: bisector(cls)),
            ("fx_minifier", lambda: minifier(cls)),
        ):
            with torch._inductor.config.patch(force_disable_caches=name != "conformance triage"):
                seconds, said = run()
            print(f"{name}: {seconds:.0f} s: {said}", flush=True)


if __name__ == "__main__":
    main()

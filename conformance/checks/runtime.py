"""Runtime: what calls leave behind, beyond the values that the oracle compares."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.checks.registry import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN001", Stage.RUNTIME, "the outputs of a call survive later calls")
def survive(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for detail in seen.facts.get("overwritten", []):
        yield Kind.STALE_OUTPUT, detail


@check("RUN004", Stage.RUNTIME, "writes to the inputs that the contract names, and returns views as it says")
def contract(seen: Seen) -> Iterator[tuple[Kind, str]]:
    written, promised = seen.facts.get("mutates"), seen.contract.runtime.mutates
    if written is not None and promised is not None and list(written) != list(promised):
        yield Kind.LOST_MUTATION, f"inputs {list(written)} were written to, contract says {list(promised)}"
    sharing = dict(entry.split(" shares with ") for entry in seen.facts.get("shares", []))
    for output, source in seen.contract.runtime.aliases.items():
        if "shares" in seen.facts and sharing.get(f"output {output}") != f"input {source}":
            yield (
                Kind.LOST_ALIAS,
                f"output {output} shares with {sharing.get(f'output {output}', 'nothing')}, contract says input {source}",
            )


@check("RUN005", Stage.RUNTIME, "a recording is what runs, and a thousand replays hold on to no memory")
def memory(seen: Seen) -> Iterator[tuple[Kind, str]]:
    nothing_to_record = seen.contract.fusion.kernels == 0 and seen.contract.fusion.library == 0
    if seen.facts.get("recordings") == 0 and not nothing_to_record:
        yield Kind.REPLAY_MISMATCH, "nothing was recorded, so that nothing can be replayed"
    if (grew := seen.facts.get("grew_by", 0)) > 0:
        yield Kind.STALE_OUTPUT, f"{grew} bytes more are allocated after a thousand replays"


@check("RUN006", Stage.RUNTIME, "what a call gave lasts as long as the step, or says that it did not")
def lifetime(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for output in seen.facts.get("silently_overwritten", ()):
        yield Kind.STALE_OUTPUT, f"{output} was overwritten by the next call of the same step, and no error says so"


@check(
    "RUN007",
    Stage.RUNTIME,
    "random numbers of the default settings: seeds, distribution, independence, one mask for forward and backward",
)
def draws(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for detail in seen.facts.get("wrong_draws", ()):
        yield Kind.WRONG_RESULT, detail

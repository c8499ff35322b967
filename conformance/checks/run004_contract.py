from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("RUN004", Stage.RUNTIME, "writes to the inputs that the contract names, and returns views as it says")
def contract(seen: Seen) -> Iterator[tuple[Kind, str]]:
    written, promised = seen.facts.get("mutates"), seen.contract.runtime.mutates
    if written is not None and promised is not None and list(written) != list(promised):
        yield Kind.LOST_MUTATION, f"inputs {list(written)} were written to, contract says {list(promised)}"
    sharing = dict(entry.split(" shares with ") for entry in seen.facts.get("shares", []))
    for output, source in seen.contract.runtime.aliases.items():
        if "shares" in seen.facts and sharing.get(f"output {output}") != f"input {source}":
            yield Kind.LOST_ALIAS, f"output {output} shares with {sharing.get(f'output {output}', 'nothing')}, contract says input {source}"

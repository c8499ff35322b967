from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("PGR001", Stage.POSTGRAD, "rewrites match exactly as often as the contract says")
def matches(seen: Seen) -> Iterator[tuple[Kind, str]]:
    known = {**seen.facts.get("rewritten", {}), **seen.facts.get("matches", {})}
    for word, promised in seen.contract.postgrad.matches.items():
        if word in known and known[word] != promised:
            kind = Kind.MATCH_LOSS if known[word] < promised else Kind.OVERFUSED
            yield kind, f"{word} matched {known[word]} times, contract says {promised}"

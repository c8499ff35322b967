"""Post-grad: rewrites that match, writes and metadata that survive the passes."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.checks.registry import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("PGR001", Stage.POSTGRAD, "rewrites match exactly as often as the contract says")
def matches(seen: Seen) -> Iterator[tuple[Kind, str]]:
    known = {**seen.facts.get("rewritten", {}), **seen.facts.get("matches", {})}
    for word, promised in seen.contract.postgrad.matches.items():
        if word in known and known[word] != promised:
            kind = Kind.MATCH_LOSS if known[word] < promised else Kind.OVERFUSED
            yield kind, f"{word} matched {known[word]} times, contract says {promised}"


@check("PGR002", Stage.POSTGRAD, "every op that a pass made says the shape and dtype of what it gives")
def metadata(seen: Seen) -> Iterator[tuple[Kind, str]]:
    if count := seen.facts.get("without_metadata"):
        yield Kind.METADATA_LOSS, f"{count} ops have no shape and dtype after the passes"


@check("PGR003", Stage.POSTGRAD, "no pass drops a write into an input")
def mutation(seen: Seen) -> Iterator[tuple[Kind, str]]:
    before, after = seen.facts.get("written_inputs_before"), seen.facts.get("written_inputs")
    if before is not None and after is not None and after < before:
        yield Kind.LOST_MUTATION, f"{before} inputs were written back before the passes, {after} after"

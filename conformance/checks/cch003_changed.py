from __future__ import annotations

from collections.abc import Iterator

from conformance.checks import Seen, check
from conformance.stage import Stage
from conformance.verdict import Kind


@check("CCH003", Stage.CACHE, "a changed setting or input is not served from the cache")
def changed(seen: Seen) -> Iterator[tuple[Kind, str]]:
    for what in ("changed_config", "changed_input", "changed_dtype", "changed_strides", "changed_constant"):
        for name, count in seen.facts.get(what, {}).items():
            if "hit" in name:
                yield Kind.STALE_CACHE, f"{what} was served from the cache: {name} {count}"

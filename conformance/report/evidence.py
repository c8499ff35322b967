"""What the page does not hold itself: facts and texts, on the page while they are few, else in a folder beside it.

A page opened from a file may not fetch other files, but it may run scripts: so each file is one call with its content."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from conformance.report import sanitize
from conformance.report.columns import CHUNK, evidence
from conformance.report.load import Loaded, is_digest, mapping
from conformance.report.matrix import Entry

# What may stand on the page itself, beside the columns: together under 3 MB.
INLINE_FACTS = 700_000
INLINE_TEXTS = 500_000
TEXT = 2_000_000
BUNDLE = 200_000
_OWN_FILE = re.compile(r"[0-9a-f]{1,64}\.js")


class Evidence:
    """inline: name → JSON that stays on the page. Without a folder, what does not fit there is left out."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.inline: dict[str, str] = {}
        self.files: list[Path] = []

    def facts(self, entries: list[Entry]) -> list[str]:
        """The names of the chunks, in the order of the cells."""
        chunks = [json_text([evidence(entry) for entry in entries[at : at + CHUNK]]) for at in range(0, len(entries), CHUNK)]
        named = [(hashlib.sha256(chunk.encode()).hexdigest()[:16], chunk) for chunk in chunks]
        self._keep(named, sum(map(len, chunks)) <= INLINE_FACTS)
        return [name for name, _ in named]

    def texts(self, entries: Iterable[Entry]) -> tuple[int, list[str]]:
        """How many characters of a digest name its bundle (none: the texts are inline), and the digests without a text."""
        sizes: dict[str, int] = {}
        runs: dict[str, Loaded] = {}
        missing: list[str] = []
        for entry in entries:
            for digest in mapping(entry.line.get("texts")).values():
                if not is_digest(digest) or digest in runs:
                    continue
                runs[digest] = entry.run
                size = entry.run.text_size(digest)
                if size is None:
                    missing.append(sanitize.name(digest))
                else:
                    sizes[digest] = min(size, TEXT)
        total = sum(sizes.values())
        if total <= INLINE_TEXTS:
            self._keep(((digest, json_text(_text(runs[digest], digest))) for digest in sizes), True)
            return 0, missing
        length = 1 if total <= 16 * BUNDLE else 2 if total <= 256 * BUNDLE else 3
        self._keep(_bundles(runs, sizes, length), False)
        return length, missing

    def sweep(self) -> None:
        """Remove what an earlier page left in the folder, and only that: files with our kind of name."""
        if self.folder is None or not self.folder.is_dir():
            return
        keep = {file.name for file in self.files}
        for file in self.folder.iterdir():
            if file.name not in keep and _OWN_FILE.fullmatch(file.name):
                file.unlink()

    def _keep(self, named: Iterable[tuple[str, str]], inline: bool) -> None:
        """All of one kind is inline or none, so that a page without its folder misses all of it and says so once."""
        if inline:
            self.inline.update(named)
        elif self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, encoded in named:
                file = self.folder / f"{name}.js"
                file.write_text(f'conformanceEvidence("{name}", {encoded});\n', encoding="ascii")
                self.files.append(file)


def json_text(value: Any) -> str:
    """JSON that may stand inside a script element, and in a script: ASCII, without the characters that end either."""
    encoded = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _bundles(runs: dict[str, Loaded], digests: Iterable[str], length: int) -> Iterator[tuple[str, str]]:
    """Texts whose digests start alike share a file: thousands of texts are a few hundred files."""
    groups: dict[str, list[str]] = defaultdict(list)
    for digest in digests:
        groups[digest[:length]].append(digest)
    for name, members in groups.items():
        yield name, json_text({digest: _text(runs[digest], digest) for digest in sorted(members)})


def _text(run: Loaded, digest: str) -> dict[str, Any]:
    found = run.text(digest, TEXT)
    return {"text": found[0], "cut": found[1]} if found is not None else {"text": "", "cut": True}

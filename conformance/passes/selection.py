"""Which micrographs a pass is examined on."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from conformance.errors import unknown
from conformance.library import load
from conformance.micrograph import Micrograph

Library = dict[str, type[Micrograph]]


def chosen(globs: Sequence[str], default: str, folders: Sequence[Path], named: bool) -> Library:
    """The micrographs of a run: those that fit the globs, among the suite's and those of the folders. Without globs, those that the pass's
    author has named; else all of the user's own folder, if one was `named`, or all that there are."""
    own: Library = {}
    for folder in folders:
        own |= load(folder)
    library = load() | own
    if globs or not named:
        wanted = list(globs) or default.split() or ["*"]
        found = {name: cls for name, cls in library.items() if any(fnmatch.fnmatch(name, glob) for glob in wanted)}
    else:
        wanted, found = ["*"], own
    if not found:
        raise unknown("micrograph", " ".join(wanted), library)
    return found


def folders_of(address: str, named: Path | None) -> list[Path]:
    """Folders of micrographs: the one that was named, and one called `micrographs` beside the pass."""
    beside = Path(address.rpartition(":")[0]).parent / "micrographs"
    return [*([beside] if beside.is_dir() else []), *([named] if named else [])]

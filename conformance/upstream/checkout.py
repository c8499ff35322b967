"""A checkout of a project: its version, its test files, and what stands in them, read without importing anything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from conformance.errors import UsageError
from conformance.upstream.stage_map import Entry, StageMap, Suite

TEST_FILES = ("test_*.py", "*_test.py")


@dataclass(frozen=True)
class Checkout:
    """A folder that was recognized as a checkout of the suite's project."""

    root: Path
    suite: Suite

    @cached_property
    def version(self) -> str:
        """As the checkout says: `2.6.0`, `1.3.0rc17`; empty where its version file is missing."""
        file = self.root / self.suite.version
        if not file.is_file():
            return ""
        text = file.read_text("utf-8", "replace")
        quoted = re.search(r"__version__\s*=\s*[\"']([^\"']+)", text)
        return quoted.group(1) if quoted else text.strip().splitlines()[0].strip()

    @cached_property
    def release(self) -> str:
        """The version without the mark of a tree that is not a release: `2.6.0a0` is the tree of 2.6.0."""
        return re.split(r"a0|\+", self.version)[0]

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The test files below the suite's roots, as paths from the checkout's root; helpers are left out."""
        found: list[str] = []
        for root in self.suite.roots:
            place = self.root / root
            paths = [place] if place.is_file() else sorted(place.rglob("*.py"))
            names = (
                path.relative_to(self.root).as_posix()
                for path in paths
                if any(fnmatchcase(path.name, glob) for glob in TEST_FILES)
            )
            found += [name for name in names if not any(fnmatchcase(name, helper) for helper in self.suite.helpers)]
        return tuple(dict.fromkeys(found))

    def words_in(self, file: str) -> set[str]:
        return set(re.findall(r"\w+", (self.root / file).read_text("utf-8", "replace")))


def open_checkout(folder: Path | None, suite: Suite) -> Checkout:
    """The checkout at a folder; anything else is the user's mistake, said with the mend."""
    wanted = f"--src must name a checkout of {suite.name}, with {' and '.join(suite.signs)}"
    if folder is None:
        raise UsageError(f"no checkout given: {wanted}")
    root = folder.expanduser()
    if not root.is_dir():
        raise UsageError(f"no checkout at {folder}: no such folder; {wanted}")
    root = root.resolve()
    if _is_one(root, suite):
        return Checkout(root, suite)
    near = next((place for place in (*root.parents, *sorted(root.glob("*/"))) if _is_one(place, suite)), None)
    raise UsageError(f"{folder} is no checkout of {suite.name}: " + (f"did you mean {near}?" if near else wanted))


def _is_one(place: Path, suite: Suite) -> bool:
    return all((place / sign).exists() for sign in suite.signs)


# --------------------------------------------------------------------------------- the map against the checkout


@dataclass(frozen=True)
class MapCheck:
    """What `--check-map` found."""

    files: int
    unmapped: tuple[str, ...]
    vanished: tuple[Entry, ...]
    ambiguous: tuple[str, ...]

    @property
    def share(self) -> float:
        return (self.files - len(self.unmapped)) / self.files if self.files else 0.0

    @property
    def clean(self) -> bool:
        return not (self.unmapped or self.vanished or self.ambiguous)


def check_map(checkout: Checkout, stage_map: StageMap) -> MapCheck:
    """Files of the checkout that no entry maps, and entries that no file, class or test of the checkout stands for."""
    unmapped = tuple(file for file in checkout.files if stage_map.find_file(file) is None)
    vanished = tuple(entry for entry in stage_map.entries if not _stands(entry, checkout))
    return MapCheck(len(checkout.files), unmapped, vanished, tuple(stage_map.ambiguous()))


def _stands(entry: Entry, checkout: Checkout) -> bool:
    """Is there something in the checkout that the entry is about: a file, and in its text words that the other parts
    select? Tests that a file makes while it is imported (copies for a device, for dynamic shapes) add to such a
    word."""
    files = [file for file in checkout.files if fnmatchcase(file, entry.file)]
    words = {word for file in files for word in checkout.words_in(file)}
    return bool(files) and all(any(fnmatchcase(word, part) for word in words) for part in entry.parts[1:])

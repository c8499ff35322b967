"""Are the kernels made for a described GPU the ones that the real GPU's machine makes? Compared kernel by kernel.

    python -m conformance.headless.fidelity record reports/fidelity/h200-torch-2.14.1.json  (on the GPU)
    python -m conformance.headless.fidelity compare reports/fidelity/h200-torch-2.14.1.json    (on any machine)

A record holds every kernel's source, so that a difference can be shown and not only stated. Left out of the comparison
is what says where and by what a kernel was made, and not what it is: `backend_hash`, paths, identifiers of the run.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from conformance.cell import select
from conformance.errors import UsageError, first_line
from conformance.headless.multi_target import generate
from conformance.headless.seam import triton
from conformance.library import load
from conformance.micrograph import Micrograph
from conformance.target import CUDA, DEVICES, Target

SCHEMA = "conformance-fidelity/1"
NOT_THE_KERNEL = (
    (re.compile(r"'backend_hash': '[0-9A-F]+',? ?"), ""),
    (re.compile(r"(['\"])/[^'\"]*?/(torchinductor_\w+|conformance-\w+)/[^'\"]*\1"), "'…'"),
    (re.compile(r"^# (?:AOT ID|kernel path): .*$", re.M), ""),
)


def normalised(source: str) -> str:
    for pattern, replacement in NOT_THE_KERNEL:
        source = pattern.sub(replacement, source)
    return source.strip() + "\n"


# ------------------------------------------------------------------------------------------- recording


def kernels_of(micrograph: type[Micrograph], target: Target) -> dict[str, str]:
    """Name → source of every kernel that one compile of the micrograph makes, in order, forward and backward."""
    return {name: normalised(source) for name, source in generate(micrograph, [target])[target.name].kernels.items()}


def record(
    target: Target, micrographs: dict[str, type[Micrograph]], progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, micrograph in micrographs.items():
        progress(name)
        try:
            made[name] = {"digest": micrograph.digest(), "kernels": kernels_of(micrograph, target)}
        except Exception as error:
            made[name] = {"digest": micrograph.digest(), "error": first_line(error)}
    device = target.device
    major, minor = (device.major, device.minor) if device else torch.cuda.get_device_capability()
    return {
        "schema": SCHEMA,
        "torch": torch.__version__,
        "triton": triton.version(),
        "device": device.name if device else torch.cuda.get_device_name(),
        "capability": f"sm_{major}{minor}",
        "micrographs": made,
    }


def read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        raise UsageError(
            f"no such record: {path}; make one with `python -m conformance.headless.fidelity record {path}`"
        ) from None
    except ValueError:
        raise UsageError(f"{path} is not JSON") from None
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{path} is not a fidelity record ({SCHEMA})")
    return data


# ------------------------------------------------------------------------------------------- comparing


@dataclass(frozen=True)
class Compared:
    """One kernel on both sides."""

    micrograph: str
    kernel: str
    diff: str  # empty: byte-identical

    @property
    def equal(self) -> bool:
        return not self.diff


def compare(real: dict[str, Any], headless: dict[str, Any]) -> Iterator[Compared]:
    """Every kernel that either side has. A kernel that only one has is a difference, too."""
    for name, entry in real["micrographs"].items():
        other = headless["micrographs"].get(name)
        if other is None:
            continue
        if "error" in entry or "error" in other:
            if entry.get("error") is None or other.get("error") is None:
                said = f"real: {entry.get('error', 'compiles')}\nheadless: {other.get('error', 'compiles')}\n"
                yield Compared(name, "-", said)
            continue
        mine, theirs = other["kernels"], entry["kernels"]
        for kernel in dict.fromkeys([*theirs, *mine]):
            yield Compared(
                name, kernel, difference(theirs.get(kernel, ""), mine.get(kernel, ""), "real GPU", "headless")
            )


def difference(one: str, other: str, one_is: str, other_is: str) -> str:
    lines = difflib.unified_diff(_split(one), _split(other), one_is, other_is, n=1, lineterm="")
    return "\n".join(lines)


def _split(source: str) -> list[str]:
    """Metadata is one long line: an item a line can be read."""
    return re.sub(r"(?<=[,{]) (?=')", "\n        ", source).splitlines()


def comparable(record: dict[str, Any]) -> str:
    """Why this record cannot be held against the installed torch; empty when it can."""
    here = torch.__version__.split("+")[0], triton.version()
    there = record["torch"].split("+")[0], record["triton"]
    return "" if here == there else f"made by torch {there[0]} and triton {there[1]}; here are {here[0]} and {here[1]}"


# ----------------------------------------------------------------------------------------- command line


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.headless.fidelity", description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("-m", "--micrographs", default="*", metavar="GLOB")
    parser.add_argument("-t", "--target", help="record for this target (default: the GPU that is present)")
    options = parser.parse_args(argv)
    try:
        return _record(options) if options.action == "record" else _compare(options)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _chosen(glob: str, names: Iterable[str]) -> dict[str, type[Micrograph]]:
    library = load()
    return {name: library[name] for name in select([n for n in library if n in {*names}], glob, "micrograph")}


def _progress(name: str) -> None:
    print(f"\r\033[K{name}", end="", file=sys.stderr, flush=True)


def _record(options: argparse.Namespace) -> int:
    target = Target.parse(options.target) if options.target else CUDA
    if target == CUDA and not torch.cuda.is_available():
        raise UsageError("no GPU here to record; name a headless target with -t, e.g. -t sm_90")
    made = record(target, _chosen(options.micrographs, load()), _progress)
    options.file.parent.mkdir(parents=True, exist_ok=True)
    options.file.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
    print(f"\r\033[K{len(made['micrographs'])} micrographs of {made['device']}, torch {made['torch']}: {options.file}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    real = read(options.file)
    if reason := comparable(real):
        raise UsageError(f"{options.file} was {reason}")
    target = Target.parse(options.target or real["capability"])
    assert target.name in DEVICES
    found = list(compare(real, record(target, _chosen(options.micrographs, real["micrographs"]), _progress)))
    print("\r\033[K", end="", file=sys.stderr)
    for one in found:
        if not one.equal:
            print(f"{one.micrograph} {one.kernel}\n{one.diff}\n")
    equal = sum(one.equal for one in found)
    print(f"{equal} of {len(found)} kernels byte-identical to {real['device']}'s, torch {real['torch']}")
    return 0 if equal == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())

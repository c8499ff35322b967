"""Are the kernels made for a described GPU the ones that the real GPU's machine makes? Compared kernel by kernel.

    conformance fidelity record reports/fidelity/h200-torch-2.14.1.json                          (on the GPU)
    conformance fidelity compare reports/fidelity/h200-torch-2.14.1.json                         (on any machine)
    conformance fidelity record drawn.json.gz --generated 300 --seed 7                           (graphs that nobody chose)

A record holds every kernel's source, so that a difference can be shown and not only stated. Left out of the comparison
is what says where and by what a kernel was made, and not what it is: `backend_hash`, paths, identifiers of the run.
"""

from __future__ import annotations

import difflib
import gzip
import json
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from conformance.cell import select
from conformance.errors import UsageError, first_line
from conformance.headless.generated import drawn
from conformance.headless.multi_target import generate
from conformance.headless.seam import triton
from conformance.library import load
from conformance.measure import preload
from conformance.micrograph import Micrograph
from conformance.processes import Job, Pool
from conformance.session import CASES_A_GPU_PROCESS
from conformance.target import CUDA, Target

SCHEMA = "conformance-fidelity/1"
SECONDS = 300.0  # for one graph
Making = Callable[[], type[Micrograph]]  # a graph, made where it is compiled
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
    target: Target,
    micrographs: Mapping[str, Making],
    workers: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The kernels of every graph. Each is made in a process of its own; on a GPU, a few share one."""
    preload([("inductor", target.name)])
    group = target.name if target == CUDA else None
    jobs = [Job(name, _made, (make, target), group) for name, make in micrographs.items()]
    made: dict[str, Any] = {}
    for event in Pool(workers, SECONDS, share=CASES_A_GPU_PROCESS).run(jobs):
        if event.said is not None:
            made[event.job.key] = event.said
            progress(event.job.key)
        elif event.death is not None:
            made[event.job.key] = {"error": f"the process died: {event.death.reason}"}
    device = target.device
    major, minor = (device.major, device.minor) if device else torch.cuda.get_device_capability()
    return {
        "schema": SCHEMA,
        "torch": torch.__version__,
        "triton": triton.version(),
        "machine": platform.machine(),
        "device": device.name if device else torch.cuda.get_device_name(),
        "capability": f"sm_{major}{minor}",
        "micrographs": {name: made[name] for name in micrographs},
    }


def _made(make: Making, target: Target, say: Callable[[Any], None]) -> None:
    digest = ""
    try:
        micrograph = make()
        digest = micrograph.digest()
        say({"digest": digest, "kernels": kernels_of(micrograph, target)})
    except Exception as error:
        say({"digest": digest, "error": first_line(error)})


def read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_text())
    except FileNotFoundError:
        raise UsageError(f"no such record: {path}; make one with `conformance fidelity record {path}`") from None
    except (ValueError, OSError, EOFError):
        raise UsageError(f"{path} is not JSON") from None
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{path} is not a fidelity record ({SCHEMA})")
    return data


def write(path: Path, made: dict[str, Any]) -> None:
    text = json.dumps(made, indent=1, sort_keys=True) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        path.write_text(text)


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


# ----------------------------------------------------------------------------------------- what is compared


@dataclass(frozen=True)
class Chosen:
    """Which graphs: those of a library, or those that are drawn."""

    globs: tuple[str, ...] = ("*",)
    folder: Path | None = None
    generated: int = 0
    seed: int = 0

    def graphs(self) -> dict[str, Making]:
        if self.generated:
            graphs = drawn(self.generated, self.seed)
            return {name: graphs[name] for name in select(list(graphs), self.globs, "graph")}
        library = load(self.folder)
        return {name: partial(library.__getitem__, name) for name in select(list(library), self.globs, "micrograph")}

    def told(self) -> dict[str, Any]:
        """What a record says of it, so that the comparison draws the same."""
        return {"generated": {"count": self.generated, "seed": self.seed}} if self.generated else {}


def record_here(file: Path, chosen: Chosen, target: str, workers: int, progress: Callable[[str], None]) -> str:
    """Records, and returns what to say of it."""
    place = Target.parse(target) if target else CUDA
    if place == CUDA and not torch.cuda.is_available():
        raise UsageError("no GPU here to record; name a headless target with -t, e.g. -t sm_90")
    made = record(place, chosen.graphs(), workers, progress) | chosen.told()
    write(file, made)
    return f"{len(made['micrographs'])} graphs of {made['device']}, torch {made['torch']}: {file}"


def compare_here(
    file: Path, chosen: Chosen, target: str, workers: int, progress: Callable[[str], None]
) -> list[Compared]:
    """Makes what a record holds once more, for the described GPU."""
    real = read(file)
    if reason := comparable(real):
        raise UsageError(f"{file} was {reason}")
    drawing = real.get("generated")
    if drawing:
        chosen = replace(chosen, generated=int(drawing["count"]), seed=int(drawing["seed"]))
    graphs = {name: make for name, make in chosen.graphs().items() if name in real["micrographs"]}
    return list(compare(real, record(Target.parse(target or real["capability"]), graphs, workers, progress)))


def other_host(file: Path) -> str:
    """What to know of a difference where the record is of a host with another processor; empty where it is not."""
    there, here = read(file).get("machine", ""), platform.machine()
    if there in ("", here):
        return ""
    return (
        f"{file.name} is of an {there} host, this one is {here}: where ATen's C++ leaves open which operand is made first "
        "(diff, kl_div, cross_entropy …), gradients are added up in another order"
    )


def summary(found: Sequence[Compared]) -> str:
    """How many kernels, and how many graphs with all of their kernels, are the same."""
    graphs: dict[str, bool] = {}
    for one in found:
        graphs[one.micrograph] = graphs.get(one.micrograph, True) and one.equal
    equal = sum(one.equal for one in found)
    return (
        f"{equal} of {len(found)} kernels byte-identical, all kernels of {sum(graphs.values())} of {len(graphs)} graphs"
    )

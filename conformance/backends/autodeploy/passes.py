"""Runs AutoDeploy's transforms one by one and keeps what each did.

Counts come from the transform's own record (`TransformInfo`); what it logs (`[SUMMARY] matches=2`) is read beside it
and must say the same.
"""

from __future__ import annotations

import gc
import logging
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import fx

from conformance.backends.autodeploy import fake_cuda, graph
from conformance.backends.autodeploy.loader import Loaded
from conformance.backends.autodeploy.pattern_cache import remembered
from conformance.errors import first_line, unknown

SUMMARY = re.compile(r"transform=(\w+)\].*\[SUMMARY\] (?:matches=(\d+)|(skipped|disabled))")
FAILED = re.compile(r"Transform (\w+) failed: (.*)", re.DOTALL)
NO_DRIVER = re.compile(r"no NVIDIA driver|not compiled with CUDA|No CUDA GPUs")
NO_OP = re.compile(r"'_OpNamespace' '(\w+)' object has no attribute '(\w+)'")


@dataclass
class PassResult:
    """What one transform did to one graph."""

    name: str
    stage: str  # AutoDeploy's
    state: str = "ran"  # ran | skipped | disabled | failed | unavailable
    matches: int = 0
    reason: str = ""  # of failed and unavailable
    logged: str = ""  # what the log says of it: a number, skipped, disabled
    tolerated: bool = False  # failed, and AutoDeploy went on without it (skip_on_error)
    added: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    lost_metadata: list[str] = field(default_factory=list)
    wrong_metadata: list[str] = field(default_factory=list)
    before: str = ""
    after: str = ""
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        return self.before != self.after

    def fact(self) -> dict[str, Any]:
        """The comparable part, for a record."""
        said: dict[str, Any] = {"matches": self.matches}
        if self.state != "ran":
            said["state"] = self.state
        if self.reason:
            said["reason"] = self.reason
        if self.lost_metadata:
            said["without_metadata"] = len(self.lost_metadata)
        return said

    @property
    def log_disagrees(self) -> bool:
        if self.state in ("failed", "unavailable") or not self.logged:
            return False
        return self.logged != (str(self.matches) if self.state == "ran" else self.state)


class _Log(logging.Handler):
    """AutoDeploy's own summary lines, and the exceptions that it swallowed."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.summaries: dict[str, str] = {}
        self.failures: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if found := SUMMARY.search(text):
            self.summaries[found[1]] = found[2] or found[3]
        elif found := FAILED.search(text):
            self.failures[found[1]] = found[2].strip()


@contextmanager
def listening() -> Iterator[_Log]:
    logger = logging.getLogger("auto_deploy")
    kept = (logger.handlers[:], logger.level, logger.propagate)
    log = _Log()
    logger.handlers, logger.propagate = [log], False
    logger.setLevel(logging.INFO)
    try:
        yield log
    finally:
        logger.handlers, logger.propagate = kept[0], kept[2]
        logger.setLevel(kept[1])


@contextmanager
def _light_gc() -> Iterator[None]:
    """Some transforms collect garbage each time; what lived before them need not be looked at again and again. In a
    forked process that is so already."""
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Passes:
    """The transforms of one AutoDeploy."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self.seam = loaded, loaded.seam

    @property
    def registry(self) -> Any:
        return self.seam.registry

    def names(self) -> list[str]:
        return sorted(self.seam.registered)

    def run(
        self, gm: fx.GraphModule, config: Mapping[str, Mapping[str, Any]]
    ) -> tuple[fx.GraphModule, list[PassResult]]:
        """All transforms of `config` in order; stops after one that fails and is not tolerated."""
        results = []
        with self.loaded.active(), fake_cuda.answers(), torch.no_grad(), _light_gc(), remembered(self.loaded):
            for name, settings in config.items():
                gm, result = self._one(gm, name, settings)
                results.append(result)
                if result.state == "failed" and not result.tolerated:
                    break
        return gm, results

    def _one(self, gm: fx.GraphModule, name: str, settings: Mapping[str, Any]) -> tuple[fx.GraphModule, PassResult]:
        if not self.registry.has(name):
            raise unknown("transform", name, self.names())
        result = PassResult(name, str(settings["stage"]))
        backup = graph.copied(gm)
        nodes, ops, result.before = set(gm.graph.nodes), Counter(graph.op_counts(gm)), graph.listing(gm)
        optimizer = self.seam.optimizer(None, {name: dict(settings)})
        started = time.perf_counter()
        with listening() as log:
            try:
                transform = self.registry.get(name)(optimizer.config[name])
                gm = transform(gm, None, self._factory(), optimizer.shared_config, 0)
            except Exception as error:
                result.state, result.reason = self._failure(error)
                result.tolerated = result.state == "unavailable"
                gm = backup  # a transform that died half-way may have left half a graph
        result.seconds = time.perf_counter() - started
        result.after = graph.listing(gm)
        if result.state == "ran":
            self._read(gm, result, log)
        after = Counter(graph.op_counts(gm))
        result.added, result.removed = dict(sorted((after - ops).items())), dict(sorted((ops - after).items()))
        new = [node for node in gm.graph.nodes if node not in nodes] if result.state == "ran" else []
        result.lost_metadata = graph.without_metadata(new)
        result.wrong_metadata = self._wrong_metadata(gm, {node.name for node in new})
        return gm, result

    def _read(self, gm: fx.GraphModule, result: PassResult, log: _Log) -> None:
        info = gm.meta[self.seam.meta_key][self.seam.history_key][result.name]
        result.matches = int(info.num_matches)
        result.logged = log.summaries.get(result.name, "")
        if result.name in log.failures:
            result.state, result.tolerated = "failed", True
            result.reason = log.failures[result.name].splitlines()[0][:300]
        elif result.logged == "disabled":
            result.state = "disabled"
        elif info.skipped:
            result.state = "skipped"

    def _failure(self, error: Exception) -> tuple[str, str]:
        """What cannot work here is no fault of the transform's: an op that the sources define but that is not compiled,
        a GPU that is not there."""
        missing = NO_OP.search(str(error))
        if missing:
            op = f"{missing[1]}::{missing[2]}"
            if defined_in(self.loaded.found.root, op):
                return "unavailable", f"needs {op}, a compiled op that a {self.loaded.found.form} does not have"
        if not torch.cuda.is_available() and NO_DRIVER.search(str(error)):
            return "unavailable", f"needs a GPU: {first_line(error, 80)}"
        return "failed", first_line(error)

    def _wrong_metadata(self, gm: fx.GraphModule, new: set[str]) -> list[str]:
        """Does what a new node says agree with what its op really makes?"""
        if not new:
            return []
        said = {node.name: node.meta.get("val") for node in gm.graph.nodes if node.name in new}
        twin = graph.copied(gm)
        try:
            self.shapes(twin)
        except Exception as error:
            return [f"shapes cannot be computed: {first_line(error)}"]
        made = {node.name: node.meta.get("val") for node in twin.graph.nodes if node.name in new}
        return [
            f"{n} says {graph.shape_of(said[n])}, makes {graph.shape_of(made[n])}"
            for n in made
            if differ(said[n], made[n])
        ]

    def shapes(self, gm: fx.GraphModule) -> None:
        """Compute shapes and dtypes anew, as AutoDeploy does between transforms."""
        with (
            self.loaded.active(),
            fake_cuda.answers(),
            self.seam.lift_to_meta(gm) if self.seam.on_meta(gm) else nullcontext(),
        ):
            self.seam.propagate_shapes(gm)

    @cache  # noqa: B019 - one object per process
    def _factory(self) -> Any:
        """A model factory that has no quantization, no checkpoint and no tokens: the micrograph is the model."""
        base = self.seam.model_factory

        def nothing(self: Any, *_: Any, **__: Any) -> None:
            return None

        members: dict[str, Any] = dict.fromkeys(base.__abstractmethods__, nothing)
        members["max_seq_len"] = property(lambda self: 512)
        return type("MicrographFactory", (base,), members)("micrograph")

    def moved(self, gm: fx.GraphModule, device: str) -> fx.GraphModule:
        """AutoDeploy exports on `meta`; this puts constants and metadata where the model is, as its weight loading
        does."""
        with self.loaded.active(), torch.no_grad():
            self.seam.move_to_device(gm, device)
        return gm


def differ(said: Any, made: Any) -> bool:
    """Two values that cannot both describe one tensor. Symbolic sizes are not compared: they may be named anew."""
    if isinstance(said, (tuple, list)) and isinstance(made, (tuple, list)):
        return len(said) != len(made) or any(differ(a, b) for a, b in zip(said, made, strict=True))
    if not isinstance(said, torch.Tensor) or not isinstance(made, torch.Tensor):
        return False
    if said.dtype != made.dtype or said.dim() != made.dim():
        return True
    return any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(said.shape, made.shape, strict=True)
    )


@cache
def defined_in(root: Path, op: str) -> str:
    """The source file, relative to the checkout, that registers a custom op; empty when none does."""
    folder = root / "tensorrt_llm" if (root / "tensorrt_llm").is_dir() else root
    space, _, name = op.partition("::")
    needle = re.compile(rf"[\"']{re.escape(space)}::{re.escape(name)}[\"'(]")
    for file in sorted(folder.rglob("*.py")):
        try:
            if needle.search(file.read_text(errors="replace")):
                return str(file.relative_to(root))
        except OSError:
            continue
    return ""

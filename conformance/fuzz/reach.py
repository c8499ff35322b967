"""What compiles reached, by stage: guards, graph breaks, ops after each stage, what was fused with what, kernels. Read from the
structured trace."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from conformance.backends.inductor.seam import TRACE_LOG
from conformance.backends.inductor.seam import seam as inductor
from conformance.backends.inductor.watch import listening
from conformance.stage import Stage

# Artifact of the trace → its stage, and what in its text is a thing that was reached.
ARTIFACTS = {
    "dynamo_cpp_guards_str": (Stage.CAPTURE, re.compile(r"\+- (?:LAMBDA_GUARD|[A-Z_]+_MATCH|[A-Z_]{4,})")),
    "dynamo_graph_break_reason": (Stage.CAPTURE, re.compile(r"gb\d{4}|Explanation: [^\n.]{5,60}")),
    "dynamo_output_graph": (Stage.CAPTURE, re.compile(r"torch\.[a-zA-Z_.]+|[a-z_]+\.(?=[a-z_]+\()")),
    "aot_forward_graph": (Stage.DECOMPOSITION, re.compile(r"torch\.ops\.[\w.]+")),
    "aot_inference_graph": (Stage.DECOMPOSITION, re.compile(r"torch\.ops\.[\w.]+")),
    "aot_joint_graph": (Stage.DECOMPOSITION, re.compile(r"torch\.ops\.[\w.]+")),
    "inductor_post_grad_graph": (Stage.POSTGRAD, re.compile(r"torch\.ops\.[\w.]+")),
    "inductor_output_code": (
        Stage.CODEGEN,
        re.compile(
            r"extern_kernels\.\w+|aoti_torch_\w+|torch\.ops\.\w+\.\w+[\w.]*|[a-z]+::(?=Vectorized|vec_reduce|atomic)\w+"
        ),
    ),
}


FUSED = re.compile(r"\b(?:cpp|triton_[a-z]+)_fused_([a-z_]+?)_*\d+\b")  # a kernel is called by the ops that it holds
OP = re.compile(r"(?:torch\.ops\.)?((?:aten|prims)\.\w+)")


@dataclass
class Reach(logging.Handler):
    """How often each thing was reached, as (stage, thing)."""

    reached: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        logging.Handler.__init__(self, logging.DEBUG)

    def __hash__(self) -> int:
        return id(self)

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None) or {}
        payload = getattr(record, "payload", None)
        if not isinstance(payload, str):
            return
        for name in {*metadata, (metadata.get("artifact") or {}).get("name", "")} & {*ARTIFACTS}:
            stage, pattern = ARTIFACTS[name]
            for thing in {*pattern.findall(payload)}:
                self.reached[stage.value, thing] += 1
            if stage is Stage.CODEGEN:
                for ops in {*FUSED.findall(payload)}:
                    self.reached[Stage.FUSION.value, ops] += 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count what is reached while this is open."""
        log = logging.getLogger(TRACE_LOG)
        before, log.propagate = log.propagate, False
        try:
            with listening(self):
                yield
        finally:
            log.propagate = before


def table(reached: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Stage → thing → how often."""
    found: dict[str, dict[str, int]] = {stage.value: {} for stage in Stage}
    for (stage, thing), count in sorted(reached.items()):
        found[stage][thing] = count
    return found


def never_lowered(reached: Counter[tuple[str, str]]) -> tuple[list[str], int]:
    """The ops that Inductor has a lowering for and that no graph held when code was generated; and how many have one."""
    if not inductor.has("lowerings"):
        return [], 0
    known = {found[1] for target in inductor.lowerings if (found := OP.fullmatch(_packet(target)))}
    seen = {found[1] for stage, thing in reached if stage == Stage.POSTGRAD.value and (found := OP.match(thing))}
    return sorted(known - seen), len(known)


def _packet(target: object) -> str:
    """`aten.add` of `aten.add.Tensor`."""
    return ".".join(str(target).split(".")[:2])

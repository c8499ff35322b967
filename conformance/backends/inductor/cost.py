"""What a program costs, without a stopwatch: bytes that its kernels read and write, and the temporaries that it needs.

By Inductor's own accounting, from the scheduler's nodes after they were turned into code. A lost fusion or a clone of a whole tensor shows as
a number that any two machines agree on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conformance.backends.inductor.seam import seam


@dataclass(frozen=True)
class Cost:
    """Bytes moved by kernels and library calls; temporaries: how many, and the most bytes of them that live at once."""

    bytes: int
    temporaries: int
    peak: int


def cost_of(scheduler: Any) -> Cost | None:
    """None where a size is only known at run time."""
    graph = seam.virtualized.graph
    try:
        moved = sum(int(node.get_read_write_buffers_sizes()) for node in scheduler.nodes)
        sizes = _temporaries(scheduler, graph)
    except Exception:  # a size that has no hint; Inductor raises what it likes, and the compile is not ours to break
        return None
    return Cost(moved, len(sizes), _peak(scheduler, sizes)) if moved else None  # 0: sizes of unbacked symbols


def _temporaries(scheduler: Any, graph: Any) -> dict[str, int]:
    """Name → bytes of what the wrapper allocates and does not return."""
    gone = set(graph.removed_buffers) | set(graph.inplaced_to_remove) | set(graph.get_output_names())
    found = {}
    for node in scheduler.nodes:
        for buffer in node.get_outputs():
            name, made = buffer.get_name(), buffer.node
            if name not in gone and made is not None and made.should_allocate() and not made.get_mutation_names():
                found[name] = _bytes(graph, made)
    return found


def _bytes(graph: Any, buffer: Any) -> int:
    layout = buffer.get_layout()
    count = 1
    for size in layout.size:
        count *= int(graph.sizevars.optimization_hint(size))
    return count * int(layout.dtype.itemsize)


def _peak(scheduler: Any, sizes: dict[str, int]) -> int:
    """In the order of the program, each freed after its last use. Reuse of memory by the wrapper is not counted: it hides what was asked for."""
    live = peak = 0
    held: set[str] = set()
    for node in scheduler.nodes:
        made = {buffer.get_name() for buffer in node.get_outputs()} & sizes.keys()
        held |= made
        live += sum(sizes[name] for name in made)
        peak = max(peak, live)
        freed = held & set(node.last_usage)
        live -= sum(sizes[name] for name in freed)
        held -= freed
    return peak

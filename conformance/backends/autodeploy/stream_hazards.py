"""Work on a second stream that reads what it did not wait for, and the other way round: read off the order of the graph.

AutoDeploy's graphs run node by node. `record_event_passthrough` records how far the main stream is; an op whose name ends in `_aux` runs on
the second stream once that event has come, and the main stream waits for it. `begin_aux_stream_passthrough` records and goes over to the
second stream, `end_aux_stream_passthrough` records there and comes back, `wait_aux_stream_passthrough` lets the main stream wait for that.
On one stream, as in a test without a GPU, a missing wait changes no value."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

from torch import fx

from conformance.backends.autodeploy.graph import op_name
from conformance.torch_seam import OpOverload, schema_of

MAIN, AUX = "the main stream", "the second stream"


@dataclass
class _Streams:
    """Which node made a value on which stream, and up to which node each stream has waited for the other."""

    on: str = MAIN
    recorded: dict[str, int] = field(default_factory=lambda: {MAIN: -1, AUX: -1})
    waited: dict[str, int] = field(default_factory=lambda: {MAIN: -1, AUX: -1})  # of a stream: for the other one
    made: dict[fx.Node, tuple[str, int]] = field(default_factory=dict)

    def too_early(self, node: fx.Node, stream: str) -> list[fx.Node]:
        made = ((value, self.made.get(value)) for value in node.all_input_nodes)
        return [value for value, place in made if place and place[0] != stream and place[1] > self.waited[stream]]


def read_too_early(gm: fx.GraphModule) -> list[str]:
    """Each node that reads, on one stream, what the other may still be computing."""
    streams, found = _Streams(), []
    for index, node in enumerate(gm.graph.nodes):
        name = op_name(node.target)
        if node.op not in ("call_function", "call_method", "call_module"):
            continue  # inputs and weights are there before the graph starts
        if name == "record_event_passthrough":
            streams.recorded[streams.on] = index
        elif name == "begin_aux_stream_passthrough":
            streams.recorded[MAIN] = streams.waited[AUX] = index
            streams.on = AUX
        elif name == "end_aux_stream_passthrough":
            streams.recorded[AUX] = index
            streams.on = MAIN
        elif name == "wait_aux_stream_passthrough":
            streams.waited[MAIN] = max(streams.waited[MAIN], streams.recorded[AUX])
        else:
            stream = streams.on
            if name.endswith("_aux"):
                stream = AUX
                streams.waited[AUX] = max(streams.waited[AUX], streams.recorded[MAIN])
            found += [
                f"{node.name} reads {value.name} on {stream} and does not wait for {streams.made[value][0]}"
                for value in streams.too_early(node, stream)
            ]
            if not _gives_a_view(node):
                streams.made[node] = (streams.on, index)  # the main stream waits for an aux op
                continue
        places = [streams.made[value] for value in node.all_input_nodes if value in streams.made]
        if places:
            streams.made[node] = max(places, key=lambda place: place[1])
    return found


def _gives_a_view(node: fx.Node) -> bool:
    """Nothing is launched for it."""
    if node.target is operator.getitem:
        return True
    schema = schema_of(node.target) if isinstance(node.target, OpOverload) else None
    return schema is not None and any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)

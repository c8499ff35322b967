"""Shards: units of one column that are handed out together, cut by recorded cost, and cut again when one of them kills its worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

LEAST, MOST = 5.0, 120.0  # seconds of work in a shard: less is mostly overhead, more is lost with a node
CROWD = 400  # units in a shard, however cheap they are
PARTS = 3  # of what is left, each slot gets this part of its share: shards become smaller towards the end
ALONE = 2  # a unit that took its worker with it so many times, at last alone, is guilty
NODES = 2  # a shard that was lost with its node so many times is suspected, and split


@dataclass
class Shard:
    """units: each with the names of the lines that it still has to give. `reason`: why its one unit is not tried any more."""

    units: dict[str, list[str]]
    losses: int = 0
    begun: str = ""  # the unit that is being worked on
    reason: str = ""

    def ended(self, unit: str, name: str) -> None:
        """A line has come."""
        names = self.units.get(unit, [])
        if name in names:
            names.remove(name)
        if not names:
            self.units.pop(unit, None)


@dataclass
class Pile:
    """The units of a column that nobody works on: whole shards that came back, and units that were never handed out, the longest first."""

    cost: Mapping[str, float]
    waiting: deque[tuple[str, list[str]]] = field(default_factory=deque)
    returned: deque[Shard] = field(default_factory=deque)
    left: float = 0.0  # seconds of work in `waiting`

    def fill(self, units: Mapping[str, list[str]]) -> None:
        ordered = sorted(units.items(), key=lambda item: -self.cost[item[0]])
        self.waiting.extend(ordered)
        self.left += sum(self.cost[unit] for unit, _ in ordered)

    def __bool__(self) -> bool:
        return bool(self.waiting or self.returned)

    def __len__(self) -> int:
        return len(self.waiting) + sum(len(shard.units) for shard in self.returned)

    def units(self) -> Iterable[str]:
        yield from (unit for unit, _ in self.waiting)
        yield from (unit for shard in self.returned for unit in shard.units)

    def take(self, slots: int) -> Shard:
        """The next shard, where so many slots share the work. What came back goes first: it has waited longest."""
        if self.returned:
            return self.returned.popleft()
        size = min(max(self.left / (PARTS * max(slots, 1)), LEAST), MOST)
        taken: dict[str, list[str]] = {}
        seconds = 0.0
        while self.waiting and len(taken) < CROWD and (not taken or seconds + self.cost[self.waiting[0][0]] <= size):
            unit, names = self.waiting.popleft()
            taken[unit] = names
            seconds += self.cost[unit]
        self.left = max(self.left - seconds, 0.0)
        return Shard(taken)

    def give_back(self, shard: Shard, how: str, node_died: bool) -> None:
        """A shard whose worker or node is gone, less the units that had ended. What was being worked on when a worker died is tried alone;
        where nothing is known, the shard is cut in two. A node that dies is not the shard's fault, until it happens twice."""
        if not shard.units:
            return
        losses = shard.losses + 1
        if node_died and losses < NODES:
            self.returned.append(Shard(shard.units, losses))
        elif len(shard.units) == 1:
            guilty = losses >= ALONE + (NODES if node_died else 0)
            self.returned.append(Shard(shard.units, losses, reason=how if guilty else shard.reason))
        else:
            suspect = [shard.begun] if shard.begun in shard.units else list(shard.units)[: len(shard.units) // 2]
            others = {unit: names for unit, names in shard.units.items() if unit not in suspect}
            self.returned.append(Shard({unit: shard.units[unit] for unit in suspect}, 1 if len(suspect) == 1 else 0))
            self.returned.append(Shard(others))

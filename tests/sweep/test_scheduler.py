"""Whatever dies, every cell is written once. The cluster is simulated; tests/sweep/test_ray.py has a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.sweep.executor import Refused
from conformance.sweep.shards import ALONE, CROWD, LEAST, Pile, Shard
from tests.sweep.support import Simulated, header, simulate, verdicts

UNITS = 60
RECORD = "torch-2.15-x86_64.jsonl"


@pytest.mark.parametrize("seed", range(12))
def test_every_cell_once_whatever_dies(seed: int, tmp_path: Path) -> None:
    poison, deadly = {seed, 40 - seed}, {50 + seed % 3}
    cluster = Simulated(seed, nodes=4, units=UNITS, poison=sorted(poison), deadly=sorted(deadly), mortal=0.004)
    simulate(cluster, tmp_path)
    found = verdicts(tmp_path / RECORD)
    assert len(found) == 7 * UNITS
    guilty = {int(name.rpartition(".")[2]) for name, verdict in found.items() if verdict == "error"}
    assert guilty == poison | deadly, "the guilty units, and no other"
    assert cluster.deaths > 2, "nodes did die"


def test_a_sweep_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """The driver is gone in the middle: the first time nothing more happens after some lines."""

    class Stops(Simulated):
        polls = 0

        def poll(self, timeout: float) -> list:
            self.polls += 1
            if self.polls > 40:
                raise KeyboardInterrupt
            return super().poll(timeout)

    with pytest.raises(KeyboardInterrupt):
        simulate(Stops(1, nodes=2, units=UNITS), tmp_path)
    before = verdicts(tmp_path / RECORD)
    assert 0 < len(before) < 7 * UNITS
    scheduler, _ = simulate(Simulated(2, nodes=2, units=UNITS), tmp_path, resume=True)
    assert len(verdicts(tmp_path / RECORD)) == 7 * UNITS
    assert scheduler.columns[0].had == len(before), "what was there is not run again"


def test_records_that_are_there_are_not_overwritten(tmp_path: Path) -> None:
    simulate(Simulated(1, nodes=1, units=2), tmp_path)
    before = (tmp_path / RECORD).read_bytes()
    scheduler, said = simulate(Simulated(1, nodes=1, units=2), tmp_path)
    assert "is there already: add --resume" in scheduler.columns[0].problem
    assert (tmp_path / RECORD).read_bytes() == before and len(said) == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"suite": "another"}, "its suite is another, and the record's is"),
        ({"env": {**header()["env"], "cpu": "AVX2"}}, "its cpu is AVX2, and the record's is None"),
        ({"env": {**header()["env"], "python": "3.12.1"}}, "its python is 3.12.1, and the record's is 3.11.1"),
    ],
)
def test_a_node_that_does_not_fit_is_refused_and_the_others_go_on(tmp_path: Path, changed: dict, told: str) -> None:
    cluster = Simulated(3, nodes=3, units=UNITS)
    cluster.headers["slot 3"] = header(**changed)
    cluster.fresh = ["slot 1", "slot 2"]
    later = iter([[]] * 12 + [["slot 3"]])
    poll = cluster.poll
    cluster.poll = lambda timeout: cluster.fresh.extend(next(later, [])) or poll(timeout)  # type: ignore[method-assign]
    _, said = simulate(cluster, tmp_path)
    assert len(verdicts(tmp_path / RECORD)) == 7 * UNITS
    assert len(said) == 1 and told in said[0], said


def test_an_environment_that_nobody_can_make_is_one_line(tmp_path: Path) -> None:
    cluster = Simulated(1, nodes=1, units=2)
    cluster.unmakeable = [Refused("torch-2.15", "no such version")]
    scheduler, said = simulate(cluster, tmp_path)
    assert said == ["torch-2.15-x86_64: no such version"]
    assert scheduler.columns[0].state == "failed" and not list(tmp_path.iterdir())


def test_with_no_machine_left_the_sweep_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dies(Simulated):
        def poll(self, timeout: float) -> list:
            found = super().poll(timeout)
            self.fresh = []  # no other node comes
            return found

        def alive(self) -> bool:
            return False

    with pytest.raises(UsageError, match="no machine is left to run on: add --resume"):
        simulate(Dies(1, nodes=2, units=UNITS, mortal=0.5), tmp_path)


# ------------------------------------------------------------------------------------------------------ shards


def pile(costs: list[float]) -> Pile:
    cost = {str(n): seconds for n, seconds in enumerate(costs)}
    made = Pile(cost)
    made.fill({unit: ["line"] for unit in cost})
    return made


def test_shards_are_cut_by_cost_and_become_smaller() -> None:
    made = pile([1.0] * 100 + [50.0])
    sizes = []
    while made:
        sizes.append(sum(made.cost[unit] for unit in made.take(slots=4).units))
    assert sizes[0] == 50.0, "the longest first, alone"
    assert sizes[1:] == sorted(sizes[1:], reverse=True) and len(sizes) > 8
    assert min(sizes[:-1]) >= LEAST and sum(sizes) == 150.0


def test_cheap_units_are_not_all_in_one_shard() -> None:
    assert len(pile([0.0] * 3 * CROWD).take(slots=1).units) == CROWD


def test_a_shard_is_split_until_the_guilty_unit_is_alone() -> None:
    made = pile([1.0] * 16)
    guilty, deaths = "11", 0
    while made:
        shard = made.take(slots=1)
        if shard.reason:
            assert list(shard.units) == [guilty]
            break
        if guilty in shard.units:
            deaths += 1
            made.give_back(
                Shard(dict(shard.units), shard.losses), "died", node_died=False
            )  # nobody knows which was begun
    else:
        pytest.fail("nobody was found guilty")
    assert deaths <= 4 + ALONE, "halves"


def test_a_unit_that_was_begun_when_its_worker_died_is_tried_alone_next() -> None:
    made = pile([])
    made.give_back(Shard({unit: ["line"] for unit in "abcd"}, begun="c"), "died", node_died=False)
    assert [list(shard.units) for shard in made.returned] == [["c"], ["a", "b", "d"]]


def test_a_node_that_dies_once_is_not_the_shards_fault() -> None:
    made = pile([])
    made.give_back(Shard({unit: ["line"] for unit in "abcd"}, begun="c"), "the node died", node_died=True)
    assert [list(shard.units) for shard in made.returned] == [["a", "b", "c", "d"]]

"""Two cells compared: whether they can be, what differs, and what that costs a user."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from conformance import record, sanitize
from conformance.report import facts
from conformance.report.address import Address, address
from conformance.report.facts import BOOKKEEPING, CODE, FEWER, FIXED, LOST, MORE, WRONG, Fact
from conformance.report.load import Loaded, findings
from conformance.report.matrix import Entry

# How bad a class is, the worst first; `CLASSES` is the order in which a reader wants them.
SEVERITY = (WRONG, LOST, MORE, FIXED, FEWER, CODE, BOOKKEEPING)
# What a finding costs the user, by its kind; every other kind is a wrong answer.
KINDS = {
    **dict.fromkeys(("match_loss", "undecomposed", "metadata_loss", "unobserved"), LOST),
    **dict.fromkeys(("graph_break", "extra_recompile", "unfused", "cache_miss"), MORE),
}
VERDICTS = {"fallback": LOST, "unsupported": LOST, "error": WRONG, "timeout": WRONG, "fail": WRONG, "xfail": WRONG}
UNSEEN = frozenset({"unavailable", "blocked"})
LADDER = "LAD001"  # the check that runs the program as of each stage
# Decided before the machine matters.
PORTABLE = frozenset({"capture", "decomposition", "postgrad"})
# By stage: what there is one of for each loop or engine.
GROUP_COUNTS = {"codegen": "vector_kernels", "cache": "engine_hit"}
HITS = frozenset({"aot_hit", "fx_hit"})  # counters of Inductor's two caches
# Counts whose entries are names of the micrograph (its dims), not of the compiler.
LOCAL = frozenset({"recompiles"})
# What kernels need, as the assembler decides it: more of one kernel's and less of another's have one reason.
EITHER_WAY = frozenset({"registers", "shared"})
_ISSUE = re.compile(r"https://github\.com/[\w.-]+/([\w.-]+)/(?:issues|pull)/([0-9]{1,9})")
_EXCEPTION = re.compile(r"\b([A-Za-z_]\w*(?:Error|Exception|Unsupported|Interrupt|Exit))\b")


class Behaviour(NamedTuple):
    """What a user sees of a cell: its class of cost (none: it is right), and in which way it is wrong."""

    rank: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """One cell that differs: its facts that differ, and its behaviour where that differs."""

    place: Address
    rank: str
    old: Entry
    new: Entry
    facts: tuple[Fact, ...] = ()
    was: Behaviour | None = None
    now: Behaviour | None = None
    before_at: str = ""  # the later stage at which it failed in the same way before

    def with_other_groups(self) -> Change:
        """The change in a compile whose groups differ, too: how many of its loops have vectors, or how many of its engines
        were found again, cannot be compared."""
        counted = GROUP_COUNTS.get(self.place.stage)
        if counted is None or self.was is not None:
            return self
        found = tuple(
            fact._replace(rank=CODE) if fact.rank in (LOST, MORE, FEWER) and counted in fact.path else fact
            for fact in self.facts
        )
        return self._with(found)

    def _with(self, ranked: tuple[Fact, ...]) -> Change:
        """The same facts in other classes."""
        return replace(self, facts=ranked, rank=_worst(ranked))

    @property
    def found_in_cache(self) -> bool:
        """Were some of the graphs of the first run found in a cache, and not before?"""
        return any(
            fact.path[:1] == ("first",) and fact.path[-1] in HITS and direction(fact) in "+>" for fact in self.facts
        )

    def with_fewer_compiles(self) -> Change:
        """The change in a compile some of whose graphs are found in a cache now: fewer were rewritten, and no match was lost."""
        if self.was is not None:
            return self
        found = tuple(
            fact._replace(rank=FEWER) if fact.rank == LOST and direction(fact) in "-<" else fact for fact in self.facts
        )
        return self._with(found)

    @property
    def expected(self) -> bool:
        """Does an expectation of the new record cover the failure?"""
        return self.new.verdict == "xfail"

    @property
    def telling(self) -> tuple[Fact, ...]:
        """The facts that put the change into its class."""
        return tuple(fact for fact in self.facts if fact.rank == self.rank)

    @property
    def _contrary(self) -> tuple[Fact, ...]:
        """Fewer nodes where something costs more, or the other way round: the nodes are others, not only more of them."""
        odd = {MORE: "<-", FEWER: ">+"}.get(self.rank, "")
        return tuple(fact for fact in self.facts if fact.path == ("ir_nodes",) and fact.change in odd)

    @property
    def signature(self) -> frozenset[tuple[str, ...]]:
        """In which way it differs: equal for two cells that differ for one reason. Two reports are two reasons."""
        if self.was is not None and self.now is not None:
            return frozenset({self._outcome(self.was, self.now)})
        marks = {(common_path(fact.path), direction(fact)) for fact in (*self.telling, *self._contrary)}
        if nothing := marks & {(("graphs",), "+"), (("graphs",), "-")}:
            marks = nothing  # nothing was captured on one side: which ops those are is the micrograph's
        ends = {mark for mark in marks if mark[1] in "+-"}
        return frozenset((*path, change) for path, change in (ends if self.rank == CODE and ends else marks))

    def _outcome(self, was: Behaviour, now: Behaviour) -> tuple[str, ...]:
        """The change of a verdict: by the report that tells of it, or else by what is wrong in which way."""
        if self.report and bool(was.rank) != bool(now.rank):
            return ("verdict", "wrong" if now.rank else "right", self.report)
        return ("verdict", *was.kinds, "→", *now.kinds, self.report)

    @property
    def url(self) -> str:
        """Where the report is that the failure is known by: an address, or the path of a repro."""
        return sanitize.line(self.new.line.get("url") or self.old.line.get("url") or "", 200)

    @property
    def report(self) -> str:
        """The same in a few characters: `pytorch#198094` or a repro's file."""
        found = _ISSUE.fullmatch(self.url)
        return f"{found[1]}#{found[2]}" if found else self.url.rpartition("/")[2]

    def summary(self, most: int = 4) -> str:
        """`pass → fail: 2 kernels, contract allows 1` or `kernels 1 → 2`"""
        if self.was is not None:
            reason = sanitize.line(self.new.line["reason"], 200)
            return self.transition() + (f": {reason}" if reason else "")
        told = [fact for fact in self.facts if fact.rank != BOOKKEEPING] or self.facts
        ordered = sorted(told, key=lambda fact: SEVERITY.index(fact.rank))
        parts = [f"{fact_name(fact.path)} {facts.brief(fact.old)} → {facts.brief(fact.new)}" for fact in ordered[:most]]
        return ", ".join(parts) + (f" and {len(ordered) - most} more" if len(ordered) > most else "")

    def result(self) -> str:
        """The same in a few words."""
        return self.transition() if self.was is not None else self.summary(1)

    def transition(self) -> str:
        """`pass → fail (unfused)`, `fails otherwise: unfused → crash`, or `still wrong: crash` where the old failure came
        before this stage."""
        assert self.was is not None and self.now is not None
        report = f" {self.report}" if self.report else ""
        if self.old.verdict == "blocked":
            return f"still wrong: {', '.join(self.now.kinds[:2])}{report}"
        if self.before_at:
            return f"fails here now, in {self.before_at} before: {', '.join(self.now.kinds[:2])}{report}"
        if self.was.rank and self.now.rank:
            return f"fails otherwise: {', '.join(self.was.kinds[:2])} → {', '.join(self.now.kinds[:2])}{report}"
        said = (self.old.verdict, self.new.verdict)
        kinds = [kind for kind in (self.now.kinds or self.was.kinds)[:3] if kind not in said]
        return f"{self.old.verdict} → {self.new.verdict}" + (f" ({', '.join(kinds)})" if kinds else "") + report

    def texts(self) -> list[tuple[str, str, str]]:
        """(name, old digest, new digest) of the long texts that differ, the most telling first."""
        old, new = self.old.line["texts"], self.new.line["texts"]
        pairs = [(name, old[name], new[name]) for name in new if name in old and old[name] != new[name]]
        kernels = [[key for name, key in texts.items() if name.startswith("kernel")] for texts in (old, new)]
        if not any(name.startswith("kernel") for name, _, _ in pairs) and all(kernels) and kernels[0] != kernels[1]:
            pairs.append(("kernel", kernels[0][0], kernels[1][0]))
        return sorted(
            pairs, key=lambda pair: next((k for k, word in enumerate(_TELLING) if word in pair[0]), len(_TELLING))
        )


_TELLING = ("graph after", "graph", "groups", "kernel", "network", "engine", "program", "code")


def common_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """The part of a fact's path that is the compiler's and not the micrograph's."""
    return path[:1] if path[0] in LOCAL else path


def _worst(found: Iterable[Fact]) -> str:
    return min((fact.rank for fact in found), key=SEVERITY.index)


def direction(fact: Fact) -> str:
    """Which way the fact moved, where that tells anything."""
    return "~" if fact.path[-1] in EITHER_WAY and fact.change in "<>" else fact.change


def fact_name(path: tuple[str, ...]) -> str:
    """`ops.aten.clone.default` → `aten.clone`: an op needs no heading."""
    name = ".".join(path[1:] if path[0] in ("ops", "aten_ops", "library") and len(path) > 1 else path)
    return sanitize.line("kernels" if name == "kernels.number" else name.removesuffix(".default"), 60)


class Comparison:
    """The rules by which two cells are compared; what they need of each pair of records is found once."""

    def __init__(self, any_revision: bool) -> None:
        self.any_revision = any_revision
        self.worlds: dict[tuple[Loaded, Loaded, str], tuple[bool, bool, bool]] = {}
        self.producers: dict[tuple[Loaded, Loaded, str, str], bool] = {}

    def uncompared(self, place: Address, old: Entry | None, new: Entry | None) -> str:
        """Why the two say nothing about the compiler; empty where they do."""
        if old is None or new is None:
            return f"only in the {'new' if old is None else 'old'} record"
        if old.verdict in UNSEEN or new.verdict in UNSEEN:
            side, one = ("new", new) if new.verdict in UNSEEN else ("old", old)
            if one.verdict == "blocked":
                return "blocked by an earlier stage"
            if side == "new" and old.verdict not in UNSEEN and record.is_unexpected(new.line):
                return ""  # the engine says that it should have been seen
            return f"not observable in the {side} record: {sanitize.line(one.line['reason'], 160) or 'no reason given'}"
        if (
            old.line.get("micrograph")
            and new.line.get("micrograph")
            and old.line["micrograph"] != new.line["micrograph"]
        ):
            return "the micrograph itself was changed"
        if not self.any_revision and not self._same_producer(place, old, new):
            return "made by two revisions of the suite (--any-revision compares them all the same)"
        return ""

    def change(self, place: Address, old: Entry, new: Entry) -> Change | None:
        if (
            old.line["observation"] == new.line["observation"]
            and old.verdict == new.verdict
            and old.line["findings"] == new.line["findings"]
        ):
            return None
        was, now = behaviour(old), behaviour(new)
        exact, same_version, same_machine = self._worlds(old.run, new.run, place.backend)
        found = facts.differences(old.line["observation"], new.line["observation"], exact)
        portable = place.stage in PORTABLE or place.target.startswith("sm_")
        if not same_machine and (same_version or not portable):
            found = [fact._replace(rank=BOOKKEEPING) for fact in found]
        if was != now:
            return Change(place, _verdict_class(was, now), old, new, tuple(found), was, now)
        if not found:
            return None
        return Change(place, _worst(found), old, new, tuple(found))

    def _same_producer(self, place: Address, old: Entry, new: Entry) -> bool:
        key = (old.run, new.run, place.stage, place.backend)
        if key not in self.producers:
            other = address(new.line["cell"])  # of another backend, where two are compared
            backend = other.backend if other is not None else place.backend
            self.producers[key] = old.run.producer(place.stage, place.backend) == new.run.producer(place.stage, backend)
        return self.producers[key]

    def _worlds(self, old: Loaded, new: Loaded, backend: str) -> tuple[bool, bool, bool]:
        """(all of the environment is the same, the versions are, the machine is)"""
        key = (old, new, backend)
        if key not in self.worlds:
            versions = old.versions(backend) == new.versions(backend) and old.torch == new.torch
            self.worlds[key] = (dict(old.env) == dict(new.env), versions, old.machine == new.machine)
        return self.worlds[key]


def behaviour(entry: Entry) -> Behaviour:
    """A known failure is a failure, and an unexpected pass a pass: expectations are not behaviour."""
    rank = VERDICTS.get(entry.verdict, LOST if entry.verdict in UNSEEN else "")
    if not rank:
        return Behaviour("", ())
    kinds = {_kind(kind, detail) for kind, _, detail in findings(entry.line)}
    said = (entry.line.get("said") or {}).get("verdict")
    if not kinds and said in VERDICTS:  # an expected fallback is a fallback
        return Behaviour(VERDICTS[said], (said,))
    if entry.verdict in ("fail", "xfail") and kinds:
        rank = min((KINDS.get(kind.split()[0] if kind else "", WRONG) for kind in kinds), key=SEVERITY.index)
    return Behaviour(rank, tuple(sorted(kinds)) or (entry.verdict,))


def by_running(entry: Entry) -> bool:
    """Was something found by running the program as of this stage? A crash shows while it is compiled, too."""
    return any(check == LADDER and kind != "crash" for kind, check, _ in findings(entry.line))


def _kind(kind: str, detail: str) -> str:
    """`crash AttributeError`: two exceptions are two failures. Details differ from run to run, types do not."""
    found = _EXCEPTION.search(detail) if kind == "crash" else None
    return f"{kind} {found[1]}" if found else kind


def _verdict_class(was: Behaviour, now: Behaviour) -> str:
    severities = ["", *reversed((WRONG, LOST, MORE))]  # the least first
    return FIXED if severities.index(now.rank) < severities.index(was.rank) else now.rank

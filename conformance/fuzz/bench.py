"""Examples a minute: the fuzzer, and a naive loop that compiles every example. Both in one run, on the same draws."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from dataclasses import replace
from typing import Any

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

from conformance import backends
from conformance.fuzz import graph_gen
from conformance.fuzz.commands import quiet
from conformance.fuzz.coverage import Tally
from conformance.fuzz.graph import micrograph_of
from conformance.fuzz.known import Register
from conformance.fuzz.rejection import Rejected
from conformance.fuzz.search import PROFILES, Profile, search
from conformance.fuzz.served import Served, runner_for
from conformance.fuzz.session import own_cache
from conformance.fuzz.strategies import Form
from conformance.library import load
from conformance.target import CPU

# Checked graphs a minute of NNSmith (git HEAD, torch.compile backend), on two cores of a machine like this one.
NNSMITH = 16.0
MICROGRAPHS = ("pointwise.chain", "norm.rmsnorm", "reduction.softmax")


class Recording(Served):
    """Keeps what it was asked to run."""

    drawn: list[tuple[Form, Any]]

    def run(self, form: Form, call: Any) -> Any:
        self.drawn.append((form, call))
        return super().run(form, call)


def measure(names: tuple[str, ...] = MICROGRAPHS, examples: int = 200, naive: int = 4) -> dict[str, Any]:
    """`naive` examples of each micrograph are also compiled one by one, for their own sizes, as a plain loop would."""
    quiet()
    backend, library = backends.get("inductor"), load()
    profile = replace(PROFILES["nightly"], examples=examples, static=0)
    fast, slow = Tally(), Tally()
    seconds = {"fuzz": 0.0, "naive": 0.0}
    with own_cache():
        _warm(backend, library, profile)
        for name in names:
            runner = Recording(backend, CPU, library[name], fast)
            runner.drawn = []
            started = time.perf_counter()
            alarm = search(runner, profile, 0)
            seconds["fuzz"] += time.perf_counter() - started
            runner.close()
            plain = Served(backend, CPU, library[name], slow)
            started = time.perf_counter()
            for form, call in itertools.islice(runner.drawn, 0, None, max(len(runner.drawn) // naive, 1)):
                try:
                    plain.run(replace(form, dynamic=False), call)
                except Rejected:
                    continue
            seconds["naive"] += time.perf_counter() - started
            plain.close()
            assert alarm is None, alarm
        graphs = _graphs(backend, profile)
    rates = {
        "fuzz": 60 * fast.examples / seconds["fuzz"],
        "naive": 60 * slow.examples / seconds["naive"],
    }
    return {
        "examples_per_minute": {k: round(v, 1) for k, v in rates.items()},
        "times": round(rates["fuzz"] / rates["naive"], 1),
        "times_nnsmith": round(rates["fuzz"] / NNSMITH, 1),
        **graphs,
        "examples": {"fuzz": fast.examples, "naive": slow.examples},
        "compiles": {"fuzz": fast.compiles, "naive": slow.compiles},
        "seconds": {k: round(v, 1) for k, v in seconds.items()},
    }


def _graphs(backend: Any, profile: Profile, count: int = 12) -> dict[str, Any]:
    """Graphs made up on the spot, as NNSmith's are: each costs its compiles, and then serves many inputs."""
    tally, alarms, started = Tally(), 0, time.perf_counter()
    register = Register.of(backend, CPU)
    for number in range(count):
        graph = graph_gen.graph(number)
        runner = runner_for(backend, CPU, micrograph_of(graph), tally, graph, register)
        alarms += search(runner, graph_gen.budget(profile), number) is not None
        runner.close()
    minutes = (time.perf_counter() - started) / 60
    return {
        "graphs_per_minute": round(count / minutes, 1),
        "graph_examples_per_minute": round(tally.examples / minutes, 1),
        "graph_times_nnsmith": round(tally.examples / minutes / NNSMITH, 1),
        "graph_compiles": tally.compiles,
        "graph_alarms": alarms,
    }


def _warm(backend: Any, library: Any, profile: Profile) -> None:
    """What is paid once in a process is not part of either."""
    runner = Served(backend, CPU, library["pointwise.broadcast"], Tally())
    search(runner, replace(profile, forms=1, examples=2), 0)
    runner.close()


if __name__ == "__main__":
    print(json.dumps(measure(examples=int(sys.argv[1]) if len(sys.argv) > 1 else 200)))

"""What triage keeps of the failing compile beyond its trace: the graph after every pass, and the lowered form of every graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from conformance.backends.inductor.seam import seam
from conformance.backends.inductor.triage.steps import pattern_name
from conformance.graphs import copied

Proceed = Callable[..., Any]


@dataclass
class Evidence:
    """Filled by subscribing to Inductor's seam; see `keeping`."""

    passes: list[tuple[str, fx.GraphModule]] = field(default_factory=list)  # the graph after each pass, in order
    patterns: list[str] = field(default_factory=list)  # those that matched since the last pass
    lowered: list[Any] = field(default_factory=list)  # GraphLowering objects
    traced: list[fx.GraphModule] = field(default_factory=list)  # what AOTAutograd is given: after the pre-grad passes
    inputs: dict[int, list[Any]] = field(default_factory=dict)  # by number of the graph: the flat inputs of the program

    def subscribers(self) -> dict[str, Proceed]:
        """What is called in place of each name of the seam."""
        return {
            **dict.fromkeys(("graph_module_pass", "graph_pass"), self.after_pass),
            **dict.fromkeys(("lowering_pattern", "graph_pattern", "replacement_pattern"), self.after_match),
            "joint_passes": self.after_joint_passes,
            "post_grad_passes": self.after_post_grad_passes,
            "pre_grad_passes": self.after_pre_grad_passes,
            "schedule": self.before_schedule,
        }

    def after_pass(self, proceed: Proceed, observer: Any, function: Any) -> Any:
        result = proceed(observer, function)
        self._keep(f"{observer.subsystem or ''}:{observer.passname}".lstrip(":"), observer.gm)
        return result

    def after_match(self, proceed: Proceed, entry: Any, *args: Any, **kwargs: Any) -> Any:
        """A set of patterns is one pass: which of them matched?"""
        result = proceed(entry, *args, **kwargs)
        name = pattern_name(entry)
        self.patterns += [name] if name not in self.patterns else []
        return result

    def after_joint_passes(self, proceed: Proceed, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        return self._after_all("joint_graph_passes", proceed, gm, *args, **kwargs)

    def after_post_grad_passes(self, proceed: Proceed, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        return self._after_all("post_grad_passes", proceed, gm, *args, **kwargs)

    def _after_all(self, name: str, proceed: Proceed, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        """What passes do beside the observed ones shows at their end."""
        result = proceed(gm, *args, **kwargs)
        self._keep(name, result if isinstance(result, fx.GraphModule) else gm)
        return result

    def after_pre_grad_passes(self, proceed: Proceed, gm: fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        result = proceed(gm, *args, **kwargs)
        self.traced.append(copied(result))
        self.passes, self.patterns = [], []  # those before the graph was traced
        return result

    def before_schedule(self, proceed: Proceed, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        self.lowered.append(seam.virtualized.graph)
        return proceed(scheduler, *args, **kwargs)

    def _keep(self, name: str, gm: fx.GraphModule) -> None:
        matched, self.patterns = self.patterns, []
        self.passes.append((f"{name} ({', '.join(matched)})" if matched else name, copied(gm)))


@contextmanager
def keeping(evidence: Evidence) -> Iterator[Evidence]:
    """Fill the evidence from the compiles inside. A name that this torch does not have is not heard: triage knows less then."""
    with seam.subscribe(**{key: call for key, call in evidence.subscribers().items() if seam.has(key)}):
        yield evidence

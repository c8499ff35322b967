"""What a compiler must answer to take part, and what it may answer besides.

A backend is a class derived from `Backend` that compiles to a `Compiled`. Third parties plug in by the entry point
group `conformance.backends`. What only some backends can do is a protocol below: fuzzing asks for `Jit`, triage for
`Triaged` and `HasTrail`, repros for `HasRepro`, bisecting for `Released`; a run reads the expectations of one that
`HasExpectations`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from conformance import oracle, scenario
from conformance.errors import CannotRun
from conformance.micrograph import Micrograph
from conformance.seam import Seam
from conformance.stage import STAGES, Stage
from conformance.target import Target
from conformance.trace import Observation

__all__ = [
    "Backend",
    "CannotRun",
    "Case",
    "Compiled",
    "HasExpectations",
    "HasRepro",
    "HasTrail",
    "Jit",
    "Released",
    "Triaged",
    "all_unavailable",
]


@dataclass(frozen=True)
class Case:
    """One micrograph to compile for one target. `sizes` overrides the micrograph's own dims."""

    micrograph: type[Micrograph]
    target: Target
    sizes: Mapping[str, int] = field(default_factory=dict)

    def module(self) -> Micrograph:
        return self.micrograph.build().to(self.run_device)

    def inputs(self, seed: int = 0, **sizes: int) -> tuple[Any, ...]:
        return self.micrograph.example(seed, {**self.sizes, **sizes}, self.run_device)

    @property
    def run_device(self) -> str:
        """Where real tensors live. Headless targets compute nothing on a GPU: their real tensors are the CPU's."""
        return "cuda" if self.target.name == "cuda" else "cpu"


class Compiled(ABC):
    """One compile. Called as a user would call it, then asked what each stage showed.

    An examination calls it once, observes `capture` … `codegen`, calls it again and again for `runtime`, then asks for
    what disturbs it most: `recapture` and the `cache` stage. It closes it at the end."""

    module: Any = None  # whose parameters and buffers a call may change (None: it has none of its own)
    outputs_persist: bool = True  # outputs outlive the next call; False where the backend documents that they do not
    compiles_at_call: bool = False  # nothing is compiled before the first call
    replays: int = 0  # further calls with values of their own, where what runs is a recording
    progress: Callable[[Stage], None] = staticmethod(lambda stage: None)  # told which stage is being worked on

    @abstractmethod
    def __call__(self, *inputs: Any) -> Any: ...

    @abstractmethod
    def observe(self, stage: Stage) -> Observation:
        """What the stage showed. Never raises for what the compiler did: that is a verdict or a fact."""

    def next_call(self, *inputs: Any) -> Any:
        """One more call in the step of the last one, where the backend knows steps: what was given before must last."""
        return self(*inputs)

    def recapture(self) -> dict[str, Any]:
        """More facts of the capture stage: `recompiles` when a named dim changes, `guarded` when a property does."""
        return {}

    def at(self, stage: Stage) -> Callable[..., Any] | None:
        """The same program as of the end of an earlier stage, called as a user would call it; None where there is none.
        The first that differs from eager names the stage at fault."""
        return None

    def at_fault(self, stage: Stage, wrong: list[Any], ref: Any) -> Stage:
        """An earlier form of the program still runs inside what the backend puts around it at run time. Asked when the form of
        `stage` differs from eager: is it that form, or what is around it?"""
        return stage

    @contextmanager
    def player(
        self, stage: Stage | None = None, *, unfused: bool = False, uncached: bool = False
    ) -> Iterator[tuple[Any, scenario.Run]]:
        """A module and what a scenario is given to run: the program, or its form as of an earlier stage; compiled with nothing fused, or
        with caches turned off, where the backend can do that (see `plays_at`). Here: the compile that there is, its state put back."""
        program = self if stage is None else self.at(stage)
        if program is None or unfused or uncached:
            raise CannotRun("there is no such form of the program")
        name = type(self).__name__.removesuffix("Compiled")
        with oracle.state_kept(self.module):
            yield (
                self.module,
                scenario.Run(
                    program, scenario.only_modules(name), scenario.only_here(name), compiled=True, ahead_of_time=name
                ),
            )

    def plays_at(self, stage: Stage) -> bool:
        """Can a scenario be played with the program as of this stage? For the cache stage: with caches turned off?"""
        return stage.order < Stage.RUNTIME.order and self.at(stage) is not None

    def out_of_reach(self, error: BaseException) -> CannotRun | None:
        """Does this error say that a scenario asked for what is not on this machine? Then it is nobody's fault."""
        return None

    def unfused(self) -> Callable[..., Any] | None:
        """The program made without fusing: where it is right and the fused one wrong, fusion is at fault."""
        return None

    def execution_contexts(self) -> Mapping[str, Callable[[], AbstractContextManager[Any]]]:
        """Other surroundings in which a call must give the same: {"on a side stream": …}."""
        return {}

    def variants(self) -> Mapping[str, Callable[..., Any]]:
        """Programs that the same compile would give for other kernels, as far as they can be computed here: {"flashinfer": …}."""
        return {}

    def around_backward(self) -> AbstractContextManager[Any]:
        """Surroundings of the backward pass of a call, where the backend compiles that too."""
        return nullcontext()

    def afterwards(self) -> dict[str, Any]:
        """More facts of the runtime stage, once all calls were made."""
        return {}

    def compiles(self) -> int:
        """How many times it has compiled until now: a call that compiles again is a recompile."""
        return 1

    def blame(self, error: BaseException) -> Stage:
        """The stage in which an exception arose."""
        return Stage.RUNTIME

    def close(self) -> None:
        """Give back what the compile holds: caches, patches, temporary folders."""


class Backend(ABC):
    """name            as it stands in cells
    default_target  what code is made for when a run names no target
    variant_of      the backend that this one is another way of calling; a run that names no backend leaves variants out
    repro_device    where the tensors of a repro live, for a backend that runs on one device whatever the target is
    """

    name: str
    default_target: str = "cpu"
    variant_of: str | None = None
    repro_device: str | None = None

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """The versions that matter, for the record's header: {"torch": "2.14.1", …}. Empty when it is not installed."""

    @abstractmethod
    def unavailable(self, target: Target) -> dict[Stage, str]:
        """The stages that cannot be observed here for this target, each with the reason and the mend in one line."""

    @abstractmethod
    def compile(self, case: Case) -> Compiled: ...

    def eager(self, case: Case, module: Any) -> Callable[..., Any]:
        """The module uncompiled, as the target runs it: what a compile is held against."""
        return module

    def targets(self) -> tuple[str, ...]:
        """The targets this backend makes code for at all; any other is `unsupported`."""
        return ("cpu",)

    def takes(self, micrograph: type[Micrograph]) -> bool:
        """Does a run give the micrograph to this backend? A variant takes what its compiler takes."""
        return not micrograph.backends or bool({self.name, self.variant_of} & {*micrograph.backends})

    def preload(self, target: Target) -> None:
        """Import, and make once, what every compile for the target needs; compile nothing. Processes are forked afterwards."""

    def seams(self) -> tuple[Seam, ...]:
        """The tables of private names that the backend relies on, for `doctor` and for the test that takes each name away."""
        return ()

    def settings_in_force(self) -> dict[str, str]:
        """The compiler's settings of this process. Where a case has left them changed, the next one is measured in another process."""
        return {}

    def settings_changed(self) -> dict[str, str]:
        """What the suite changes in the compiler's settings, each with its reason, for `doctor`."""
        return {}


def all_unavailable(reason: str) -> dict[Stage, str]:
    """No stage can be observed, for this one reason."""
    return dict.fromkeys(STAGES, reason)


# ------------------------------------------------------------------------------------- optional capabilities


@runtime_checkable
class Jit(Protocol):
    """Compiles at the first call and guards every later one: what fuzzing of sizes and guards can call."""

    def compile_entry(self, module: Any, **options: Any) -> Callable[..., Any]:
        """The callable that a user gets: `torch.compile(module)`."""

    def marked(self, case: Case, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs with the contract's dynamic dims marked."""

    def settings(self, case: Case) -> AbstractContextManager[None]:
        """The settings that every process which compiles the case has to agree on."""


@runtime_checkable
class Triaged(Protocol):
    """Can hold its compiles at a rung and say what happened inside a stage."""

    def triage_adapter(self) -> Any:
        """A `conformance.triage.adapter.Adapter`."""


@runtime_checkable
class HasTrail(Protocol):
    """Leaves behind what triage needs to name a culprit and to make the graph smaller."""

    def trail(self, case: Case, held: Any) -> Any:
        """A `conformance.triage.trail.Trail` of the compile that is held open, or, where `held` is None, of a new one;
        None where there is none."""


@runtime_checkable
class HasRepro(Protocol):
    """Can be called from a script that imports nothing of this project."""

    def repro_entry(self, stage: str) -> tuple[str, str] | None:
        """The name of the function that compiles a module as far as a stage ("": the whole program), and the text that
        defines it; None where a repro cannot be had. The script that it goes into has a function `inputs()`. The text
        may say `{transform}` for the name of the transform at fault."""


@runtime_checkable
class Released(Protocol):
    """Has releases that bisecting can install."""

    package: str  # the distribution whose versions are tried; "": it has none, and commits of a checkout are


@runtime_checkable
class HasExpectations(Protocol):
    """Brings what is known to be wrong with it: a package of its own cannot write into the suite's folder."""

    expectations: Path  # a folder of TOML files, as fixtures/expectations

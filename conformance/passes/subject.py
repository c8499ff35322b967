"""What a pass author brings, as something that can be put into a compile.

    conformance pass fused.py:add_rms_norm

The object may be
  - a function or an object that is called with a graph: what `torch._inductor.config.post_grad_custom_pre_pass` takes,
  - a class of such objects, made without arguments,
  - a `PatternMatcherPass` with registered patterns,
  - a tuple (pattern, replacement, example inputs[, options of register_replacement]), or a list of such tuples.

An attribute `hook` of the object, or a variable `hook` of the file, says where the pass runs; `micrographs`, on what.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import fx, nn

from conformance.backends.inductor.triage.steps import pattern_name
from conformance.errors import UsageError, first_line, unknown
from conformance.passes.pattern import Pattern, pattern_of
from conformance.passes.seam import seam
from conformance.stage import Stage


@dataclass(frozen=True)
class Hook:
    """A place in Inductor where a custom pass runs. `setting` is the setting of torch._inductor.config that holds it."""

    name: str
    setting: str
    stage: Stage
    aten: bool = True  # the graph there calls ATen ops; before autograd it calls torch functions


HOOKS = {
    hook.name: hook
    for hook in (
        Hook("pre_grad", "pre_grad_custom_pass", Stage.CAPTURE, aten=False),
        Hook("joint_pre", "joint_custom_pre_pass", Stage.POSTGRAD),
        Hook("joint_post", "joint_custom_post_pass", Stage.POSTGRAD),
        Hook("post_grad_pre", "post_grad_custom_pre_pass", Stage.POSTGRAD),
        Hook("post_grad_post", "post_grad_custom_post_pass", Stage.POSTGRAD),
    )
}
DEFAULT_HOOK = "post_grad_pre"


@dataclass
class Subject:
    """A pass. `run` is called with a graph; `sets` are the pattern sets that it applies, as far as they can be found."""

    name: str
    run: Callable[..., Any]
    hook: Hook = HOOKS[DEFAULT_HOOK]
    sets: list[Any] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)  # pattern entry → its name
    micrographs: str = ""
    file: Path | None = None

    def apply(self, graph: fx.Graph, is_inference: bool) -> Any:
        """Run the pass as Inductor would."""
        if "is_inference" in _parameters(self.run):
            return self.run(graph, is_inference=is_inference)
        return self.run(graph)

    def entries(self) -> list[Any]:
        """The registered patterns, each once, in the order of their registration."""
        found: dict[int, Any] = {}
        for patterns in self.sets:
            for registered in patterns.patterns.values():
                found |= {id(entry): entry for entry in registered}
        return list(found.values())

    def entry_name(self, entry: Any) -> str:
        if id(entry) not in self.names:
            known = {*self.names.values()}
            name = base = _own_name(entry)
            number = 2
            while name in known:
                name, number = f"{base} {number}", number + 1
            self.names[id(entry)] = name
        return self.names[id(entry)]

    def patterns(self) -> list[Pattern]:
        return [pattern_of(entry.pattern, self.entry_name(entry)) for entry in self.entries()]


def _own_name(entry: Any) -> str:
    """The name that its author gave a pattern, or that of the function it was traced from."""
    search = _closed_over(getattr(entry, "extra_check", None), "search_fn")
    named = getattr(entry, "pattern_name", None)
    return str(named or getattr(search, "__name__", "") or pattern_name(entry))


def _closed_over(function: Any, name: str) -> Any:
    """A variable that a function was defined with; None where there is none."""
    code = getattr(function, "__code__", None)
    if code is None or name not in code.co_freevars:
        return None
    cell = function.__closure__[code.co_freevars.index(name)]
    return cell.cell_contents


def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


# ------------------------------------------------------------------------------------------------- loading


def load(address: str, hook: str | None = None) -> Subject:
    """The pass at `FILE.py:OBJECT`."""
    file, _, name = address.rpartition(":")
    if not file.endswith(".py") or not name:
        raise UsageError(f"not a pass: {address!r}; write FILE.py:OBJECT")
    module = load_module(Path(file))
    if not hasattr(module, name):
        raise unknown(f"object in {file}", name, [n for n in vars(module) if not n.startswith("_")])
    subject = subject_of(getattr(module, name), name, hook or getattr(module, "hook", None))
    subject.file = Path(file)
    subject.micrographs = subject.micrographs or str(getattr(module, "micrographs", ""))
    return subject


def load_module(file: Path) -> ModuleType:
    """The file as a module, once a process: it may register custom ops, which torch takes only once."""
    if not file.is_file():
        raise UsageError(f"no file {file}")
    resolved = file.resolve()
    name = f"conformance_pass_{resolved.stem}_{hashlib.sha256(str(resolved).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, resolved)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(resolved.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"{file} does not import: {first_line(error)}") from None
    finally:
        sys.path.remove(folder)
    return module


def subject_of(value: Any, name: str = "", hook: str | None = None) -> Subject:
    """Any of the forms that a pass may have."""
    name = name or getattr(value, "__name__", type(value).__name__)
    if isinstance(value, nn.Module) or (isinstance(value, type) and issubclass(value, nn.Module)):
        raise UsageError(f"{name} is a module, not a pass: name a micrograph with -m, and a pass as FILE.py:OBJECT")
    if isinstance(value, type):
        try:
            value = value()
        except Exception as error:
            raise UsageError(f"{name} cannot be made without arguments: {first_line(error)}") from None
    where = hook or getattr(value, "hook", None) or DEFAULT_HOOK
    if where not in HOOKS:
        raise unknown("hook", str(where), HOOKS)
    if isinstance(value, seam.pattern_pass):
        made = Subject(name, value.apply, HOOKS[where], [value])
    elif isinstance(value, (tuple, list)):
        made = _registered(name, value, HOOKS[where])
    elif callable(value):
        made = Subject(name, value, HOOKS[where], list(_pattern_sets(value)))
    else:
        raise UsageError(
            f"{name} is a {type(value).__name__}: expected a pass, a PatternMatcherPass, or (pattern, replacement, inputs)"
        )
    made.micrographs = str(getattr(value, "micrographs", ""))
    return made


def _registered(name: str, value: Any, hook: Hook) -> Subject:
    """Patterns by example, registered as their author would."""
    rules = [value] if callable(value[0]) else list(value) if value else []
    patterns = seam.pattern_pass(pass_name=name)
    made = Subject(name, patterns.apply, hook, [patterns])
    for rule in rules:
        if (
            not isinstance(rule, (tuple, list))
            or len(rule) not in (3, 4)
            or not callable(rule[0])
            or not callable(rule[1])
        ):
            raise UsageError(f"{name}: expected (pattern, replacement, example inputs), found {str(rule)[:60]}")
        search, replacement, inputs, *options = rule
        inputs = inputs() if callable(inputs) else inputs
        known = {id(entry) for entry in made.entries()}
        try:
            seam.register_replacement(
                search, replacement, list(inputs), seam.fwd_only, patterns, **(options[0] if options else {})
            )
        except Exception as error:
            raise UsageError(f"{name}: the pattern {search.__name__} cannot be traced: {first_line(error)}") from None
        for entry in made.entries():
            if id(entry) not in known:
                made.names[id(entry)] = search.__name__
    return made


def _pattern_sets(value: Any) -> Iterator[Any]:
    """The pattern sets that a pass applies: in its attributes, in what its function was defined with, in globals that it names."""
    function = value if inspect.isfunction(value) else vars(type(value)).get("__call__")
    function = getattr(value, "__func__", function)
    places: list[Any] = list(getattr(value, "__dict__", {}).values())
    owner = getattr(value, "__self__", None)
    places += list(getattr(owner, "__dict__", {}).values())
    code = getattr(function, "__code__", None)
    if code is not None:
        places += [function.__globals__.get(each) for each in code.co_names]
        places += [cell.cell_contents for cell in function.__closure__ or ()]
    seen: set[int] = set()
    for place in places:
        for each in place if isinstance(place, (list, tuple)) else [place]:
            if isinstance(each, seam.pattern_pass) and id(each) not in seen:
                seen.add(id(each))
                yield each

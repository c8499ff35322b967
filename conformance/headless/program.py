"""`torch.compile` for a described GPU, called with CPU tensors: compiled as on that GPU, run by interpretation."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from conformance.backends.inductor.seam import seam as inductor
from conformance.errors import first_line, innermost_first
from conformance.headless.autotune import FIRST, Choice, Pick, fixed
from conformance.headless.cpu_dispatch import NOT_RESIZABLE, Host
from conformance.headless.device import described
from conformance.headless.errors import NotInterpretable
from conformance.headless.interpret import interpreting
from conformance.headless.kernel import Kernel
from conformance.headless.memory import Memory
from conformance.headless.seam import seam, unavailable
from conformance.stage import Stage
from conformance.target import Target
from conformance.torch_seam import STATE_TABLES, base_of, is_zerotensor, pytree, storage_key


@contextlib.contextmanager
def session(
    target: Target, make: Callable[[str, str], Kernel] = Kernel, pick: Pick = FIRST, choices: list[Choice] | None = None
) -> Iterator[None]:
    """The target's GPU is described, its memory is the host's, and what is launched on it is interpreted. `make` is
    given the name and the source of every kernel that a generated program has, and returns what the program
    launches."""

    def build(proceed: Any, compiler: Any, kernel_name: str, source_code: str, device_str: str = "cuda") -> Kernel:
        return make(kernel_name, source_code)

    with contextlib.ExitStack() as stack:
        stack.enter_context(described(target))
        if inductor.has("build_triton_kernel"):
            stack.enter_context(inductor.subscribe(build_triton_kernel=build))
        # Nothing is compiled in the background: no pool of workers that knows nothing of the described device.
        stack.enter_context(inductor.config.patch(compile_threads=1))
        stack.enter_context(fixed(pick, choices))
        if Stage.RUNTIME not in unavailable():
            stack.enter_context(interpreting())
        stack.enter_context(Host())
        yield


class Program:
    """A compiled module, or the module as it is: eager on that device.

    Its parameters and buffers are those of the module it was made from: the same bytes on both sides."""

    launches = True  # False: kernels are made and not run, where only their source is asked for

    def __init__(
        self,
        module: nn.Module,
        target: Target,
        compiled: bool = True,
        pick: Pick = FIRST,
        options: Mapping[str, Any] | None = None,  # of `torch.compile`
    ) -> None:
        self.target, self.module, self.pick = target, module, pick
        self.kernels: dict[str, Kernel] = {}
        self.choices: list[Choice] = []
        self.memory = Memory()
        self.twin = copy.deepcopy(module)
        self._attributes = dict(_attributes(module))
        self._share_hooks()
        self.fn = torch.compile(self.twin, **(options or {})) if compiled else self.twin
        self._mirrors: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def __call__(self, *inputs: Any) -> Any:
        with _beyond_description(compiled=self.fn is not self.twin):
            return self._call(inputs)

    def _call(self, inputs: tuple[Any, ...]) -> Any:
        given = [x for x in inputs if isinstance(x, torch.Tensor)] + list(self.module.parameters())
        leaves = tuple(x for x in given if x.requires_grad) if torch.is_grad_enabled() else ()
        if not leaves:
            outputs, spec = self._on_device(inputs)[:2]
            if any(isinstance(x, torch.Tensor) and x.requires_grad and not x.is_leaf for x in outputs):
                raise NotInterpretable(
                    "a result has a gradient function and no input has: that stays on the GPU's side"
                )
            return pytree.tree_unflatten([self._to_host(x) for x in outputs], spec)
        bridge = Bridge(self, inputs)
        try:
            flat = list(Crossing.apply(bridge, *leaves))
        except Exception as error:
            if "leaf Variable" in str(error) and not all(leaf.is_leaf for leaf in leaves):
                raise NotInterpretable(
                    "a write to an input that another computation made: here inputs are leaves"
                ) from error
            raise
        return pytree.tree_unflatten([flat.pop(0) if tensor else x for x, tensor in bridge.outputs], bridge.spec)

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        with session(self.target, self._kernel, self.pick, self.choices):
            yield

    def _kernel(self, name: str, source: str) -> Kernel:
        self.kernels[name] = Kernel(name, source, self.launches)
        return self.kernels[name]

    def _on_device(self, inputs: tuple[Any, ...]) -> tuple[list[Any], Any, dict[int, torch.Tensor]]:
        """Outputs on the device, their structure, and the device's side of each tensor that was given."""
        with self.session():
            sides: dict[int, torch.Tensor] = {}
            self._state_in(sides)
            self._attributes_in(sides)
            arguments = [self._to_device(x, sides) if isinstance(x, torch.Tensor) else x for x in inputs]
            before = [
                (x, y, y.untyped_storage())
                for x, y in zip(inputs, arguments, strict=True)
                if isinstance(y, torch.Tensor)
            ]
            result = self.fn(*arguments)
            self._state_out()
            for given, side, storage in before:
                if storage_key(side) != storage_key(storage):  # `x.data = y`
                    given.data = self._to_host(side).detach()
            flat, spec = pytree.tree_flatten(result)
            return flat, spec, sides

    def _to_device(self, tensor: torch.Tensor, sides: dict[int, torch.Tensor]) -> torch.Tensor:
        if id(tensor) not in sides:
            if is_zerotensor(tensor):
                raise NotInterpretable("a tensor of zeros that has no memory")
            if _only_wraps(tensor):
                raise NotInterpretable(WRAPPER)
            # Views of one tensor are views of one side: compilers ask whether inputs that share memory have the same base.
            base = base_of(tensor)
            over = self._to_device(base, sides) if base is not None and base.dtype == tensor.dtype else None
            with seam.no_dispatch():
                if over is not None:
                    side = over.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
                else:
                    side = self.memory.on_device(tensor.detach() if tensor.requires_grad else tensor)
            vars(side).update({k: v for k, v in vars(tensor).items() if k.startswith("_dynamo")})
            sides[id(tensor)] = side.requires_grad_(tensor.requires_grad)
        return sides[id(tensor)]

    def _to_host(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if _only_wraps(value):
            raise NotInterpretable(WRAPPER)
        with seam.no_dispatch():
            host = self.memory.on_host(value.detach())
        if type(value) is not torch.Tensor:
            host = host.as_subclass(type(value))
            vars(host).update({name: self._to_host(held) for name, held in vars(value).items()})
        return host.requires_grad_() if value.is_leaf and value.requires_grad else host

    # ------------------------------------------------------------------------------------------- state

    def _state_in(self, sides: dict[int, torch.Tensor]) -> None:
        """The twin's parameters and buffers are the device's side of the module's, whatever was assigned since."""
        for (owner, table, name), tensor in _state(self.module):
            known = self._mirrors.get(f"{owner}.{name}")
            if known is None or known[0] is not tensor:
                side = self._to_device(tensor, sides)
                if isinstance(tensor, nn.Parameter) and not isinstance(side, nn.Parameter):  # it may have two names
                    side = nn.Parameter(side.detach(), tensor.requires_grad)
                    sides[id(tensor)] = side
                known = self._mirrors[f"{owner}.{name}"] = (tensor, side)
            sides[id(tensor)] = known[1]
            getattr(self.twin.get_submodule(owner), table)[name] = known[1]

    def _share_hooks(self) -> None:
        """Hooks that are registered later are the twin's as well."""
        for name, part in self.module.named_modules():
            tables = {key: value for key, value in vars(part).items() if "_hooks" in key}
            vars(self.twin.get_submodule(name)).update(tables)

    def _attributes_in(self, sides: dict[int, torch.Tensor]) -> None:
        """What was set or taken away on the module since it was copied, in its `__dict__`. Modules are left out: they have no twin."""
        now = dict(_attributes(self.module))
        for (owner, name), value in now.items():
            if self._attributes.get((owner, name), _MISSING) is not value and not isinstance(value, nn.Module):
                side = self._to_device(value, sides) if isinstance(value, torch.Tensor) else value
                vars(self.twin.get_submodule(owner))[name] = side
        for owner, name in self._attributes.keys() - now.keys():
            vars(self.twin.get_submodule(owner)).pop(name, None)
        self._attributes = now

    def _state_out(self) -> None:
        """A buffer that the call bound anew is bound anew in the module as well."""
        for (owner, table, name), tensor in _state(self.twin):
            known = self._mirrors.get(f"{owner}.{name}")
            if known is None or known[1] is not tensor:
                getattr(self.module.get_submodule(owner), table)[name] = self._to_host(tensor)


_REAL_DRIVER = re.compile(r"CUDA driver version is insufficient|Found no NVIDIA driver|No CUDA GPUs are available")
_TWO_DEVICES = re.compile(
    r"two different devices|at least two devices|expected device cuda(:\d+)? but got (device )?cpu"
)
_CPU_ALONE = re.compile(r"\S+ is only implemented for CPU tensors")
_HELD_HERE = "the raw Tensor object is already associated to a python object"


def needs_driver(error: BaseException) -> bool:
    """Did it reach for a GPU that is described and not there?"""
    return "CUDA error:" in str(error) or _REAL_DRIVER.search(_said(error)) is not None


def _said(error: BaseException) -> str:
    """By the error and by all that it came of."""
    return "\n".join(map(str, innermost_first(error)))


@contextlib.contextmanager
def _beyond_description(compiled: bool) -> Iterator[None]:
    """There is no GPU behind the description: what reaches CUDA itself is beyond us, and no fault of the compiler's. Nor are tensors that
    the program itself makes on the CPU: a GPU's eager refuses them as well, and says so itself."""
    try:
        yield
    except Exception as error:
        if needs_driver(error):
            raise NotInterpretable(f"the program calls CUDA itself: {first_line(error)}") from error
        said = _said(error)
        if _HELD_HERE in said:
            raise NotInterpretable("the program makes a tensor of a class of its own of one of the GPU's") from error
        if (alone := _CPU_ALONE.search(said)) is not None:
            raise NotInterpretable(f"a GPU has no such operator: {alone[0]}") from error
        if NOT_RESIZABLE in said:
            raise NotInterpretable(
                "the program resizes memory of the GPU: here it is memory of another tensor"
            ) from error
        if compiled and _TWO_DEVICES.search(said):
            raise NotInterpretable("the program has tensors on the CPU beside those of the GPU") from error
        raise


WRAPPER = "a tensor that only wraps others: it has no memory of its own, and what is inside stays on the other side"


def _only_wraps(tensor: torch.Tensor) -> bool:
    return type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


_MISSING = object()
_OWN_TABLES = (*STATE_TABLES, "_modules", "_non_persistent_buffers_set")


def _attributes(module: nn.Module) -> Iterator[tuple[tuple[str, str], Any]]:
    """All that the parts of a module have beside parameters, buffers and submodules."""
    for owner, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in _OWN_TABLES:
                yield (owner, name), value


def _state(module: nn.Module) -> Iterator[tuple[tuple[str, str, str], torch.Tensor]]:
    for owner, part in module.named_modules():
        for table in STATE_TABLES:
            for name, tensor in list(getattr(part, table).items()):
                if tensor is not None:
                    yield (owner, table, name), tensor


# ------------------------------------------------------------------------------------------- gradients


class Bridge:
    """One call that gradients go through: what autograd on one side has to know of the other."""

    def __init__(self, program: Program, inputs: tuple[Any, ...]) -> None:
        self.program, self.inputs = program, inputs
        self.outputs: list[tuple[Any, bool]] = []
        self.spec: Any = None
        self.device: list[torch.Tensor] = []

    def forward(self, leaves: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        with torch.enable_grad():
            flat, self.spec, sides = self.program._on_device(self.inputs)
        self.leaves = [sides[id(leaf)] for leaf in leaves]
        self.outputs = [(x, isinstance(x, torch.Tensor)) for x in flat]
        self.device = [x for x, tensor in self.outputs if tensor]
        return [self.program._to_host(x) for x in self.device]

    def backward(self, gradients: tuple[torch.Tensor | None, ...]) -> list[torch.Tensor | None]:
        program = self.program
        with program.session(), torch.enable_grad():
            pairs = [(x, g) for x, g in zip(self.device, gradients, strict=True) if x.requires_grad and g is not None]
            sides: dict[int, torch.Tensor] = {}
            given = [program._to_device(g, sides) for _, g in pairs]
            found = torch.autograd.grad([x for x, _ in pairs], self.leaves, given, allow_unused=True)
        return [None if g is None else program._to_host(g) for g in found]


class Crossing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, bridge: Bridge, *leaves: torch.Tensor) -> Any:
        ctx.bridge = bridge
        outputs = bridge.forward(leaves)
        ctx.mark_non_differentiable(*(h for h, d in zip(outputs, bridge.device, strict=True) if not d.requires_grad))
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.bridge.backward(gradients))

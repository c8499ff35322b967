"""What a call left behind: outputs, strides, shared storage, inputs and state after the call, gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from conformance.oracle.snapshot import PLAIN, snapshot
from conformance.oracle.wrappers import is_wrapper, taken_apart
from conformance.torch_seam import pytree

SEED = 1234


@dataclass
class Outcome:
    """All that a call left behind."""

    spec: Any = None  # structure of what was returned
    outputs: list[Any] = field(default_factory=list)  # flat, detached clones
    strides: list[tuple[int, ...] | None] = field(default_factory=list)
    shares: list[str] = field(
        default_factory=list
    )  # whose storage each output shares: "input 0", "output 0", "buffer k", ""
    inputs: dict[str, torch.Tensor] = field(default_factory=dict)  # tensors of the inputs, after the call
    state: dict[str, torch.Tensor] = field(default_factory=dict)  # parameters and buffers, after the call
    grads: dict[str, torch.Tensor | None] = field(default_factory=dict)
    python: dict[str, Any] = field(
        default_factory=dict
    )  # Python values of inputs and module after the call: path → leaf
    requires_grad: list[bool] = field(default_factory=list)
    drawn: bool = False  # the call consumed random numbers
    live: list[Any] = field(default_factory=list, repr=False)  # the outputs themselves, to see whether they survive
    error: BaseException | None = None


def clone_inputs(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies with the same strides, storage offsets and sharing of storage."""
    storages: dict[int, torch.Tensor] = {}

    def copy_one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        storage = value.untyped_storage()
        if storage.data_ptr() not in storages or storage.nbytes() == 0:
            raw = torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage)
            storages[storage.data_ptr()] = raw.clone()
        raw = storages[storage.data_ptr()]
        twin = torch.empty(0, dtype=value.dtype, device=value.device).set_(
            raw.untyped_storage(), value.storage_offset(), value.size(), value.stride()
        )
        return twin.requires_grad_(value.requires_grad)

    return tuple(copy_one(value) for value in inputs)


@contextmanager
def state_kept(module: nn.Module | None) -> Iterator[None]:
    """Put parameters and buffers back in place afterwards, so that every call starts from the same state."""
    if module is None:
        yield
        return
    tensors = dict(_state(module))
    saved = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    attributes = {name: (value, copy.deepcopy(value)) for name, value in _attributes(module)}
    try:
        yield
    finally:
        _put_back(module, attributes)
        for name, tensor in tensors.items():
            with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                tensor.copy_(saved[name])
                tensor.grad = None
        for name, tensor in tensors.items():
            _rebind(module, name, tensor)


def _state(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """The Python attributes of a module and its parts: numbers, strings, and containers of them."""
    for name, part in module.named_modules():
        for attribute, value in vars(part).items():
            if attribute not in _OWN and attribute != "training" and isinstance(value, (*PLAIN, list, dict, set)):
                yield f"{name}.{attribute}".lstrip("."), value


_OWN = frozenset(vars(nn.Module())) | {"_is_torch_compile"}  # torch's own; the last is written by torch.compile


def _put_back(module: nn.Module, attributes: dict[str, tuple[Any, Any]]) -> None:
    """Attributes as they were: containers are filled anew, so that they stay the same objects."""
    now = dict(_attributes(module))
    for name in now.keys() - attributes.keys():
        owner, leaf = _owner(module, name)
        delattr(owner, leaf)
    for name, (value, kept) in attributes.items():
        if isinstance(value, list):
            value[:] = kept
        elif isinstance(value, (dict, set)):
            value.clear()
            value.update(kept)
        if now.get(name) is not value:
            owner, leaf = _owner(module, name)
            setattr(owner, leaf, value)


def _owner(module: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, leaf = name.rpartition(".")
    return module.get_submodule(path), leaf


def _rebind(module: nn.Module, name: str, tensor: torch.Tensor) -> None:
    owner, leaf = _owner(module, name)
    if getattr(owner, leaf) is not tensor:
        setattr(owner, leaf, tensor)


def seed() -> None:
    """Equal random numbers. Where there is no GPU, its share of `torch.manual_seed` is skipped: it takes a traceback each time."""
    if torch.cuda.is_available():
        torch.manual_seed(SEED)
    else:
        torch.default_generator.manual_seed(SEED)


def run(fn: Callable[..., Any], inputs: tuple[Any, ...], module: nn.Module | None = None, *, calls: int = 1) -> Outcome:
    """Call `fn` (`calls` times on the same inputs, for micrographs of several steps) and keep all that it left behind.

    The inputs are used as they are: clone them before, where they are needed again."""
    seed()
    before = torch.get_rng_state()
    wants_grad = any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs)
    with state_kept(module):
        try:
            with torch.set_grad_enabled(wants_grad):
                for _ in range(calls):
                    result = fn(*inputs)
            drawn = not torch.equal(before, torch.get_rng_state())
            around_backward = getattr(fn, "around_backward", nullcontext)
            return _outcome(result, inputs, module, around_backward if wants_grad else None, drawn)
        except Exception as error:
            return Outcome(error=error)


def play(module: Any, program: Any, inputs: tuple[Any, ...]) -> Outcome:
    """Play a micrograph's scenario with a program and keep all that it left behind. It takes its gradients itself."""
    seed()
    before = torch.get_rng_state()
    try:
        result = module.play(program, *inputs)
        drawn = not torch.equal(before, torch.get_rng_state())
        return _outcome(result, inputs, module, None, drawn)
    except Exception as error:
        return Outcome(error=error)


def _outcome(
    result: Any,
    inputs: tuple[Any, ...],
    module: nn.Module | None,
    around_backward: Callable[[], AbstractContextManager[Any]] | None,
    drawn: bool,
) -> Outcome:
    flat, spec = pytree.tree_flatten(taken_apart(result))
    owners = _owners(inputs, module)
    outcome = Outcome(spec=spec, drawn=drawn, live=flat)
    for index, value in enumerate(flat):
        tensor = isinstance(value, torch.Tensor)
        outcome.outputs.append(value.detach().clone(memory_format=torch.preserve_format) if tensor else _kept(value))
        outcome.strides.append(tuple(value.stride()) if tensor else None)
        outcome.shares.append(owners.get(_address(value), "") if tensor else "")
        outcome.requires_grad.append(tensor and value.requires_grad)
        if tensor and _address(value):
            owners.setdefault(_address(value), f"output {index}")
    if around_backward is not None:
        outcome.grads = _backward(pytree.tree_leaves(result), inputs, module, around_backward())
    outcome.inputs = {f"input {i}": x.detach().clone() for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}
    for index, value in enumerate(inputs):
        if not isinstance(value, (torch.Tensor, *PLAIN)):
            outcome.python |= snapshot(value, f"input {index}")
    if module is not None:
        outcome.state = {name: tensor.detach().clone() for name, tensor in _state(module)}
        outcome.python |= snapshot(dict(_attributes(module)), "attributes")
    return outcome


def _kept(value: Any) -> Any:
    """A returned value that later calls cannot change any more."""
    return value if isinstance(value, PLAIN) else snapshot(value)


def _address(tensor: torch.Tensor) -> int:
    """Where its memory begins; 0 where it has none, as what only wraps others."""
    return tensor.untyped_storage().data_ptr() if tensor.numel() and not is_wrapper(tensor) else 0


def _owners(inputs: tuple[Any, ...], module: nn.Module | None) -> dict[int, str]:
    owners: dict[int, str] = {}
    named = [(f"input {i}", x) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
    named += [(f"state {name}", x) for name, x in _state(module)] if module is not None else []
    for name, tensor in named:
        if _address(tensor):
            owners.setdefault(_address(tensor), name)
    return owners


def _backward(
    flat: list[Any], inputs: tuple[Any, ...], module: nn.Module | None, around: AbstractContextManager[Any]
) -> dict[str, torch.Tensor | None]:
    """Gradients of a fixed random projection of all outputs."""
    generator = torch.Generator().manual_seed(SEED)
    loss: Any = 0.0
    for value in flat:
        if isinstance(value, torch.Tensor) and value.requires_grad:
            weights = torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value.device, value.dtype)
            loss = loss + (value * weights).sum()
    if isinstance(loss, torch.Tensor):
        with around:
            loss.backward()
    named = [(f"input {i}", x) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.requires_grad]
    named += list(module.named_parameters()) if module is not None else []
    return {name: None if x.grad is None else x.grad.detach().clone() for name, x in named}

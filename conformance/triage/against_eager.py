"""Is an object compiled what it is in eager? This file is copied into the script that stands for `FILE.py:OBJECT`, so
that the script needs nothing of this project."""

import copy
import sys
from typing import Any

import torch
from torch.utils import _pytree as pytree


def exit_against_eager(subject: Any, example_inputs: Any) -> None:
    """Exit 1 where two calls of the compiled object, with their gradients, are seen to differ from those of eager."""
    torch._inductor.config.fallback_random = True  # random numbers as in eager
    eager = seen(*made(subject, example_inputs))
    try:
        exact = seen(*map(in_float64, made(subject, example_inputs)))
    except Exception:  # not every program runs in float64
        exact = {}
    thing, inputs = made(subject, example_inputs)
    got = seen(thing, inputs, torch.compile(thing))
    wrong = [name for name in eager if not same(eager[name], got.get(name), exact.get(name))]
    for name in wrong[:5]:
        print(f"{name}: in eager {str(eager[name])[:200]}, compiled {str(got.get(name))[:200]}")
    sys.exit(1 if wrong else 0)


def made(subject: Any, example_inputs: Any) -> tuple[Any, tuple[Any, ...]]:
    """The object and its inputs, always the same; tensors that share storage still do in the copy."""
    torch.manual_seed(0)
    thing = subject() if isinstance(subject, type) else copy.deepcopy(subject)
    return thing, tuple(example_inputs() if callable(example_inputs) else copy.deepcopy(example_inputs))


def in_float64(value: Any) -> Any:
    def widened(x: Any) -> Any:
        floating = isinstance(x, torch.Tensor) and x.is_floating_point()
        return x.detach().double().requires_grad_(x.requires_grad) if floating else x

    return value.double() if isinstance(value, torch.nn.Module) else pytree.tree_map(widened, value)


def seen(thing: Any, inputs: tuple[Any, ...], call: Any = None) -> dict[str, Any]:
    """All that a caller can see: outputs, inputs afterwards, who shares storage with whom, gradients, state."""
    found: dict[str, Any] = {}
    leaves = pytree.tree_leaves(inputs)
    for turn in range(2):
        torch.manual_seed(turn)
        out = pytree.tree_leaves((thing if call is None else call)(*inputs))
        found |= {f"output {n} of call {turn}": copied(x) for n, x in enumerate(out)}
        found |= {f"input {n} after call {turn}": copied(x) for n, x in enumerate(leaves)}
        found[f"outputs that share storage in call {turn}"] = shared(leaves, out)
        totals = [x.sum() for x in out if isinstance(x, torch.Tensor) and x.requires_grad and x.is_floating_point()]
        if totals:
            torch.stack([total.double() for total in totals]).sum().backward()
    found |= {
        f"gradient of input {n}": copied(x.grad)
        for n, x in enumerate(leaves)
        if isinstance(x, torch.Tensor) and x.is_leaf
    }
    if isinstance(thing, torch.nn.Module):
        found |= {f"state {name}": copied(x) for name, x in thing.state_dict().items()}
        found |= {f"gradient of {name}": copied(x.grad) for name, x in thing.named_parameters()}
    return found


def copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def shared(inputs: list[Any], outputs: list[Any]) -> list[tuple[int, int]]:
    """Pairs of an output and an input, or an earlier output, in one storage."""
    every = [x for x in [*inputs, *outputs] if isinstance(x, torch.Tensor) and x.layout is torch.strided]
    where = [x.untyped_storage().data_ptr() if x.numel() else 0 for x in every]
    first = sum(any(x is y for y in inputs) for x in every)
    return [(i, j) for j in range(first, len(where)) for i in range(j) if where[j] and where[i] == where[j]]


def same(eager: Any, got: Any, exact: Any) -> bool:
    """Equal, with the error that eager itself has when it is measured against float64."""
    if not isinstance(eager, torch.Tensor) or not isinstance(got, torch.Tensor):
        plain = isinstance(eager, (int, float, complex, str, bytes, bool, list, type(None)))
        return type(eager) is type(got) and (not plain or eager == got or eager != eager)
    if (eager.dtype, eager.shape) != (got.dtype, got.shape) or strides(eager) != strides(got):
        return False
    try:
        torch.testing.assert_close(got, eager, equal_nan=True)
        return True
    except AssertionError:
        if not eager.is_floating_point() or not isinstance(exact, torch.Tensor) or exact.shape != eager.shape:
            return False
    own, error = ((x.double() - exact.double()).nan_to_num().abs().max().item() for x in (eager, got))
    largest = exact.double().nan_to_num().abs().max().item()
    return torch.equal(eager.isnan(), got.isnan()) and error <= 4 * own + torch.finfo(eager.dtype).eps * largest


def strides(x: torch.Tensor) -> tuple[int, ...]:
    """Those that are ever used."""
    return (
        tuple(step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1)
        if x.layout is torch.strided and x.numel()
        else ()
    )

"""What `torch.compile(backend="openvino")` does wrong, without this project: `python defects.py` lists them, `python defects.py NAME`
shows one. Exits 1 while the defect is there, 0 once it is gone. Seen with openvino 2026.4.1 and torch 2.15.0 on x86_64."""

import sys

import openvino.torch  # noqa: F401
import torch
from torch import nn

OPTIONS = {"config": {"INFERENCE_PRECISION_HINT": "f32"}}


def compiled(fn):
    return torch.compile(fn, backend="openvino", options=OPTIONS)


@torch.no_grad()
def overwritten():
    """The second call writes into the tensor that the first one returned."""
    fn = compiled(lambda x: x.sin() + 1)
    first = fn(torch.zeros(3))
    fn(torch.ones(3))
    return bool((first != 1).any())


@torch.no_grad()
def guards():
    """Tracing to ATen ops adds guards on its own names to Dynamo's, and the compile ends in an AssertionError."""
    module = nn.Sequential(nn.Conv1d(3, 4, 3), nn.GELU())
    try:
        compiled(module)(torch.randn(2, 3, 8))
    except AssertionError as error:
        print(str(error).splitlines()[0])
        return True
    return False


@torch.no_grad()
def lost_write():
    """A write into an input is not there after the call."""

    def average(kept, x):
        kept.copy_(kept * 0.5 + x * 0.5)
        return kept * 2

    kept = torch.zeros(6)
    compiled(average)(kept, torch.ones(6))
    return bool((kept != 0.5).any())


@torch.no_grad()
def reordered():
    """An op that reads an input is moved behind one that writes to it."""

    def read_then_write(x):
        y = x.sin() + 1
        x.add_(1)
        return y * x

    x, y = torch.ones(3), torch.ones(3)
    got, want = compiled(read_then_write)(x), read_then_write(y)
    return not torch.allclose(got, want) or not torch.equal(x, y)


def no_gradient():
    """What is returned does not require a gradient, although the input does."""
    x = torch.ones(3, requires_grad=True)
    return not compiled(lambda x: x.sin() * 2)(x).requires_grad


@torch.no_grad()
def double():
    """float64 is computed as float32."""
    x = torch.linspace(0, 1, 9, dtype=torch.float64)
    fn = lambda x: x.sin() * 2
    return bool((compiled(fn)(x) - fn(x)).abs().max() > 1e-12)


@torch.no_grad()
def strides():
    """An output that eager gives with the strides of its input is contiguous."""
    x = torch.randn(4, 6).t()
    return compiled(lambda x: x.sin() + 1)(x).stride() != (x.sin() + 1).stride()


@torch.no_grad()
def bfloat16():
    """A bfloat16 graph is taken, and then left to torch: the table of dtypes has no bfloat16. Only a debug log says so."""
    from openvino.frontend.pytorch.torchdynamo import execute

    execute.clear_caches()
    compiled(lambda x: x.sin() + 1)(torch.ones(3, dtype=torch.bfloat16))
    return not execute.compiled_cache


DEFECTS = (overwritten, guards, lost_write, reordered, no_gradient, double, strides, bfloat16)

if __name__ == "__main__":
    known = {defect.__name__: defect for defect in DEFECTS}
    if len(sys.argv) != 2 or sys.argv[1] not in known:
        sys.exit("\n".join(f"{name}: {defect.__doc__}" for name, defect in known.items()))
    there = known[sys.argv[1]]()
    print(f"{sys.argv[1]}: {'still there' if there else 'gone'}")
    sys.exit(int(there))

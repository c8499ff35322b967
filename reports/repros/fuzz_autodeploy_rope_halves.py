"""AutoDeploy's match_rope_pattern takes any two parts of a head for its halves: `cat((-x[..., 2:], x[..., :2]))` of a head of 8 is rotated as
if it were cut at 4.

The pattern ignores all integers of its slices (`op_ignore_types`). Found by `conformance fuzz -b autodeploy -m programs` (grammar
`decoder_attention`, TensorRT-LLM 1.3.0rc17). Needs tensorrt_llm, or its sources (TRTLLM_SRC=checkout), no GPU; exits 1 while the defect is there.
"""

import importlib
import logging
import os
import pathlib
import sys
import traceback
import types

import torch
import yaml
from torch.overrides import TorchFunctionMode


class Unbuilt:
    """tensorrt_llm from the sources alone (TRTLLM_SRC=checkout): what needs its compiled parts is missing."""

    OPEN = tuple(f"tensorrt_llm._torch.{name}" for name in ("auto_deploy", "modules.fla", "modules.mamba", "compilation"))
    HOLLOW = ("", "._torch", "._torch.modules", "._torch.modules.fla", "._torch.modules.mamba", "._torch.compilation")

    def __init__(self, root):
        for name in ("tensorrt_llm" + part for part in self.HOLLOW):
            sys.modules[name] = package = types.ModuleType(name)
            package.__path__ = [str(pathlib.Path(root).joinpath(*name.split(".")))]
        sys.modules["tensorrt_llm.logger"] = module = types.ModuleType("tensorrt_llm.logger")
        module.logger = logging.getLogger("tensorrt_llm")
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name.startswith("tensorrt_llm.") and not any(name == known or name.startswith(known + ".") for known in self.OPEN):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class OnTheCPU(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device")).startswith("cuda"):
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


TRANSFORM = "match_rope_pattern"
AUTODEPLOY = "tensorrt_llm._torch.auto_deploy"


def transformed(module):
    """The exported graph after this one transform, with the settings of AutoDeploy's default.yaml."""
    if "TRTLLM_SRC" in os.environ:
        Unbuilt(os.environ["TRTLLM_SRC"])
    if not torch.cuda.is_available():  # transforms ask how much memory is free, and make example tensors on a GPU
        torch.cuda.mem_get_info = lambda device=None: (1 << 34, 1 << 34)
        torch.cuda.memory_reserved = torch.cuda.memory_allocated = lambda device=None: 0
        torch.cuda.empty_cache = torch.cuda.synchronize = lambda device=None: None
        torch.cuda.get_device_capability = lambda device=None: (9, 0)
        OnTheCPU().__enter__()
    load = lambda name: importlib.import_module(f"{AUTODEPLOY}.{name}")
    load("transform.library")
    folder = pathlib.Path(importlib.import_module(AUTODEPLOY).__file__).parent
    settings = yaml.safe_load((folder / "config" / "default.yaml").read_text())["transforms"][TRANSFORM]
    optimizer = load("transform.optimizer").InferenceOptimizer(None, {TRANSFORM: settings})
    with torch.no_grad():
        graph = load("export").torch_export_to_gm(module, args=inputs(), clone=False)
        transform = load("transform.interface").TransformRegistry.get(TRANSFORM)(optimizer.config[TRANSFORM])
        graph = transform(graph, None, None, optimizer.shared_config, 0)
        load("utils._graph").move_to_device(graph, "cpu")
    return graph


class Repro(torch.nn.Module):
    def forward(self, q, k, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        q = (q * cos) + (torch.cat((-q[..., 2:], q[..., :2]), dim=-1) * sin)
        k = (k * cos) + (torch.cat((-k[..., 2:], k[..., :2]), dim=-1) * sin)
        return q, k


def inputs():
    torch.manual_seed(0)
    return torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 8)


def main():
    module = Repro()
    eager, compiled = module(*inputs()), transformed(module)(*inputs())
    try:
        exact = module.double()(*[x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs()])
    except RuntimeError:  # a dtype is written into the graph
        exact = eager
    flat = torch.utils._pytree.tree_leaves
    for index, (got, want, best) in enumerate(zip(flat(compiled), flat(eager), flat(exact), strict=True)):
        if got.dtype != want.dtype or got.shape != want.shape or got.stride() != want.stride():
            print(f"output {index}: {got.dtype} {tuple(got.shape)} {got.stride()}")
            print(f"in eager: {want.dtype} {tuple(want.shape)} {want.stride()}")
            return 1
        if not want.is_floating_point():
            if not torch.equal(got, want):
                print(f"output {index}: {got.tolist()}")
                print(f"in eager: {want.tolist()}")
                return 1
            continue
        odd = ~(torch.isfinite(want) & torch.isfinite(best))
        if not torch.allclose(got[odd], want[odd], equal_nan=True):
            print(f"output {index}: {got[odd].tolist()} where eager gives {want[odd].tolist()}")
            return 1
        error, own, size = (max(x[~odd].double().abs().tolist(), default=0.0) for x in (got - best, want - best, best))
        if not error <= 4 * own + 1e-5 + 2 * torch.finfo(want.dtype).eps * size:
            print(f"output {index}: error {error:.3g} against fp64, eager's own is {own:.3g}")
            return 1
    print("the defect is gone")
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except Exception:
        traceback.print_exc()
        code = 3  # this file does not run here: nothing is said of the defect
    sys.exit(code)

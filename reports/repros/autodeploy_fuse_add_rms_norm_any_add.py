"""AutoDeploy's fuse_add_rms_norm takes any `aten.add.Tensor` before an RMSNorm for a residual add of two tensors of one shape and dtype.

The fused kernel adds its two arguments and normalizes the sum. It is put in place of an add of a number (then it is given a float where a
tensor belongs), of an add with a factor (alpha is lost), of one row to all positions (the sum gets the row's shape), of a tensor to itself (both
results are written into its memory), and of a float32 add that is cast to bfloat16 before the norm (the result is float32).

TRTLLM_SRC=checkout; needs no GPU: the graphs are looked at. Exit code 1 while one of these adds is fused, 0 once none is."""

import importlib
import logging
import os
import pathlib
import sys
import types

import torch
import yaml
from torch.overrides import TorchFunctionMode

AUTODEPLOY = "tensorrt_llm._torch.auto_deploy"
TRANSFORMS = ("match_rmsnorm_pattern", "fuse_rmsnorm", "fuse_add_rms_norm")


class Unbuilt:
    """tensorrt_llm from the sources alone: what needs its compiled parts is missing."""

    HOLLOW = ("", "._torch", "._torch.modules", "._torch.modules.fla", "._torch.modules.mamba", "._torch.custom_ops")
    HOLLOW += (".quantization", ".quantization.utils")
    OPEN = ("_torch.auto_deploy", "_torch.modules.fla", "_torch.modules.mamba", "_torch.flashinfer_utils")
    OPEN += ("_torch.cuda_tile_utils", "quantization.utils.fp4_utils")

    def __init__(self, root):
        for name in ("tensorrt_llm" + part for part in self.HOLLOW):
            sys.modules[name] = package = types.ModuleType(name)
            package.__path__ = [str(pathlib.Path(root).joinpath(*name.split(".")))]
        sys.modules["tensorrt_llm.logger"] = module = types.ModuleType("tensorrt_llm.logger")
        module.logger = logging.getLogger("tensorrt_llm")
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        _, _, inside = name.partition("tensorrt_llm.")
        if inside and not any(f"{inside}.".startswith(f"{known}.") for known in self.OPEN):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class OnTheCPU(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device")).startswith("cuda"):
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


def load(name):
    return importlib.import_module(f"{AUTODEPLOY}.{name}")


def fused(module, inputs):
    """How many fused kernels are in the graph after the three transforms."""
    folder = pathlib.Path(importlib.import_module(AUTODEPLOY).__file__).parent
    known = yaml.safe_load((folder / "config" / "default.yaml").read_text())["transforms"]
    settings = {name: {**known[name], "enabled": True} for name in TRANSFORMS}
    optimizer = load("transform.optimizer").InferenceOptimizer(None, settings)
    with torch.no_grad():
        graph = load("export").torch_export_to_gm(module, args=inputs, clone=False)
        for index, name in enumerate(TRANSFORMS):
            config = optimizer.config[name]
            config.run_shape_prop = False  # it fails on what the last transform makes of a number
            transform = load("transform.interface").TransformRegistry.get(name)(config)
            graph = transform(graph, None, None, optimizer.shared_config, index)
    return sum("fused_add_rms_norm" in str(node.target) for node in graph.graph.nodes)


class AddThenNorm(torch.nn.Module):
    def __init__(self, add):
        super().__init__()
        self.add, self.weight = add, torch.nn.Parameter(torch.ones(32, dtype=torch.bfloat16))

    def forward(self, *inputs):
        x = self.add(*inputs)
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


x, row = torch.randn(2, 5, 32, dtype=torch.bfloat16), torch.randn(32, dtype=torch.bfloat16)


def twice(x):
    y = x * 1.5
    return y + y


CASES = {
    "a number": (lambda x: x + 1.0, (x,)),
    "a factor": (lambda x, y: torch.add(x, y, alpha=2), (x, x.clone())),
    "one row": (lambda x, y: x + y, (x, row)),
    "itself": (twice, (x,)),
    "float32, cast afterwards": (lambda x, y: (x + y).to(torch.bfloat16), (x.float(), x.float())),
}

if __name__ == "__main__":
    if "TRTLLM_SRC" in os.environ:
        Unbuilt(os.environ["TRTLLM_SRC"])
    if not torch.cuda.is_available():
        torch.cuda.mem_get_info = lambda device=None: (1 << 34, 1 << 34)
        torch.cuda.memory_reserved = torch.cuda.memory_allocated = lambda device=None: 0
        torch.cuda.empty_cache = torch.cuda.synchronize = lambda device=None: None
        torch.cuda.get_device_capability = lambda device=None: (9, 0)
        OnTheCPU().__enter__()
    load("transform.library")
    wrong = [name for name, (add, inputs) in CASES.items() if fused(AddThenNorm(add), inputs)]
    print(f"fused as a residual add: {', '.join(wrong) or 'none'}")
    sys.exit(1 if wrong else 0)

"""AutoDeploy exports with other strides than the inputs have: a graph that asks for them gets numbers of another layout.

`run_forward_for_capture` moves the arguments to `meta` with `Tensor.to`, which keeps the strides of dense tensors only: one that is
expanded or cut out of a larger one becomes contiguous. `x.as_strided(x.shape, x.stride())` is then exported with strides (7, 1) for an
input whose strides are (14, 2), and reads other elements, or beyond the end. Plain torch.export keeps the strides. Found by shape
fuzzing on TensorRT-LLM 1.3.0rc17 with torch 2.14.1. Needs tensorrt_llm, or its sources (TRTLLM_SRC=checkout); exits 1 while the defect
is there.
"""

import importlib
import logging
import os
import pathlib
import sys
import types

import torch


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


class Same(torch.nn.Module):
    def forward(self, x):
        return x.as_strided(x.shape, x.stride()) * 2


if "TRTLLM_SRC" in os.environ:
    Unbuilt(os.environ["TRTLLM_SRC"])
export = importlib.import_module("tensorrt_llm._torch.auto_deploy.export").torch_export_to_gm
wrong = False
base = torch.arange(140.0)
for name, x in {"strided": base.reshape(10, 14)[::2, ::2], "expanded": base[:7].expand(5, 7), "plain": base[:35].reshape(5, 7)}.items():
    for how, exported in (("AutoDeploy", export(Same(), args=(x,))), ("torch.export", torch.export.export(Same(), (x,)).module())):
        try:
            said = "right" if torch.equal(exported(x), Same()(x)) else "wrong"
        except RuntimeError as error:
            said = f"RuntimeError: {str(error)[:120]}"
        wrong |= how == "AutoDeploy" and said != "right"
        print(f"{name}, {how}: {said}")
print("torch", torch.__version__, "WRONG" if wrong else "right")
sys.exit(wrong)

"""AutoDeploy cannot export a module that makes a constant where its input is: `torch.tensor(6, device=x.device)`.

AutoDeploy exports with its inputs on `meta`; the constant is made on `meta` too, and torch.export fails an assertion: "Can't call
metadata mutating ops on non-Fake Tensor inputs". With the inputs where they are, torch.export takes the module. Found by shape fuzzing on
an H200 (TensorRT-LLM 1.3.0rc17, torch 2.11.0; a generated graph, shrunk to one line). Needs tensorrt_llm, or its sources
(TRTLLM_SRC=checkout); exits 1 while the defect is there.
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


class Constant(torch.nn.Module):
    def forward(self, x):
        return x + torch.tensor(6, dtype=x.dtype, device=x.device)


if "TRTLLM_SRC" in os.environ:
    Unbuilt(os.environ["TRTLLM_SRC"])
export = importlib.import_module("tensorrt_llm._torch.auto_deploy.export").torch_export_to_gm
x = torch.ones(2, 2)
print("torch.export:", "right" if torch.equal(torch.export.export(Constant(), (x,)).module()(x), x + 6) else "wrong")
try:
    export(Constant(), args=(x,))
except Exception as error:
    print(f"AutoDeploy: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
    print("torch", torch.__version__, "WRONG")
    sys.exit(1)
print("AutoDeploy: right")

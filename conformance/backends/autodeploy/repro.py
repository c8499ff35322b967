"""How a repro calls AutoDeploy: text that goes into the repro, and imports nothing of this project."""

from __future__ import annotations

# AutoDeploy from a checkout that nobody built, and what its transforms ask of a GPU. `begin()` is called where it is used.
UNBUILT = '''
import importlib
import logging
import os
import pathlib
import sys
import types

import torch
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


def begin():
    """AutoDeploy from a checkout that nobody built, on a machine without a GPU."""
    if "TRTLLM_SRC" in os.environ and "tensorrt_llm" not in sys.modules:
        Unbuilt(os.environ["TRTLLM_SRC"])
    if not torch.cuda.is_available():  # transforms ask how much memory is free, and make example tensors on a GPU
        torch.cuda.mem_get_info = lambda device=None: (1 << 34, 1 << 34)
        torch.cuda.memory_reserved = torch.cuda.memory_allocated = lambda device=None: 0
        torch.cuda.empty_cache = torch.cuda.synchronize = lambda device=None: None
        torch.cuda.get_device_capability = lambda device=None: (9, 0)
        OnTheCPU().__enter__()

'''
TRANSFORMED = (
    UNBUILT
    + '''
import yaml

TRANSFORM = "{transform}"
AUTODEPLOY = "tensorrt_llm._torch.auto_deploy"


def transformed(module):
    """The exported graph after this one transform, with the settings of AutoDeploy's default.yaml."""
    begin()
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
'''
)

EXPORTED = '''
def exported(module):
    """AutoDeploy's transforms run only inside its own pipeline: this is torch.export, where they begin."""
    return torch.export.export(module.eval(), inputs()).module()
'''


def entry(stage: str) -> tuple[str, str] | None:
    """One transform alone, where a transform is at fault."""
    if stage in ("decomposition", "postgrad", "fusion"):
        return "transformed", TRANSFORMED
    return None if stage else ("exported", EXPORTED)

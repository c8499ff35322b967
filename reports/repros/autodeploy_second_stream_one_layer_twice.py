"""AutoDeploy's multi_stream_mla_attn takes a weight that two products use for their common input.

Where a layer is called twice in a chain, the second product goes to the second stream and waits for an event that is recorded before the
first one has run. On a GPU it reads its input too early (seen in a CUDA graph on an H200).

TRTLLM_SRC=checkout; needs no GPU: the graph is looked at. Exit code 1 while the second product reads what comes after the event."""

import importlib
import logging
import os
import pathlib
import sys
import types

import torch
from torch.overrides import TorchFunctionMode

AUTODEPLOY = "tensorrt_llm._torch.auto_deploy"


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


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, x):
        return self.linear(torch.relu(self.linear(x)))


if __name__ == "__main__":
    if "TRTLLM_SRC" in os.environ:
        Unbuilt(os.environ["TRTLLM_SRC"])
    if not torch.cuda.is_available():
        torch.cuda.current_device = lambda: 0
        torch.cuda.mem_get_info = lambda device=None: (1 << 34, 1 << 34)
        torch.cuda.get_device_capability = lambda device=None: (9, 0)
        OnTheCPU().__enter__()
    load("transform.library")
    graph = torch.export.export(Twice(), (torch.randn(2, 16),)).module()
    graph, matches = load("transform.library.multi_stream_attn")._execute_kv_proj_in_aux_stream(graph)
    print(f"{matches} moved to the second stream")
    print(graph.graph)
    order = {node: index for index, node in enumerate(graph.graph.nodes)}
    events = [order[node] for node in order if "record_event_passthrough" in node.name]
    early = [
        value.name
        for node in order
        if node.name.endswith("_aux")
        for value in node.all_input_nodes
        if value.op == "call_function" and order[value] > max(e for e in events if e < order[node])
    ]
    print(f"read on the second stream, and not waited for: {', '.join(early) or 'nothing'}")
    sys.exit(1 if early else 0)

"""A serialized engine, taken from the builder instead of loaded: loading asks the driver, building does not."""

from __future__ import annotations

from typing import Any

from torch import nn


class Plan:
    """What `TRTInterpreter.run` and the engine cache ask of an `ICudaEngine`, answered from the bytes alone."""

    def __init__(self, data: Any) -> None:
        self.data = bytes(data)

    def serialize(self) -> bytes:
        return self.data

    def create_serialization_config(self) -> PlanConfig:
        return PlanConfig()

    def serialize_with_config(self, config: PlanConfig) -> bytes:
        return self.data

    def get_aliased_input_tensor(self, name: str) -> str:
        """Only a loaded engine knows; the aliases that the network declares are kept by the interpreter itself."""
        return ""


class PlanConfig:
    def set_flag(self, flag: Any) -> bool:
        return True

    def clear_flag(self, flag: Any) -> bool:
        return True


class PlanRuntime:
    """Stands where `tensorrt.Runtime` stands while no GPU is there."""

    def __init__(self, logger: Any) -> None:
        pass

    def deserialize_cuda_engine(self, data: Any) -> Plan | None:
        return None if data is None else Plan(data)


class PlanModule(nn.Module):
    """Stands where `TorchTensorRTModule` stands: the same metadata, and no way to run."""

    def __init__(self, name: str, result: Any) -> None:
        super().__init__()
        self.name = name
        self.serialized_engine = result.serialized_engine
        self.input_binding_names = list(result.input_names)
        self.output_binding_names = list(result.output_names)
        self.aliased_io = dict(getattr(result, "aliased_io", {}) or {})

    def setup_engine(self) -> None:
        pass

    def set_output_tensors_as_unowned(self, enabled: bool) -> None:
        pass

    def forward(self, *inputs: Any) -> Any:
        raise RuntimeError(f"the engine {self.name} was built without a GPU and needs a CUDA device to run")

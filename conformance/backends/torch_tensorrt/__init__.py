"""The backend `torch_tensorrt`."""

from conformance.backends.torch_tensorrt.backend import TorchTensorRTBackend

__all__ = ["TorchTensorRTBackend"]

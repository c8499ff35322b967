"""Tensors of a described GPU, whose memory is the host's.

`on_device(t)` is a tensor that says `cuda:0` and lies on the same bytes as `t`; `on_host` is the way back. Nothing is copied:
what one writes, the other reads. So Dynamo, AOTAutograd and Inductor see plain CUDA tensors (no fake ones, no subclass), and
the program they make can be given real values. Storage stays shared where it was: two views of one storage are still
that, and a storage that was handed out is recognised when it comes back.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from conformance.headless.errors import Moved

DLPACK_CPU, DLPACK_CUDA = 1, 2
CUDA = torch.device("cuda", 0)


class Memory:
    """The two sides of each storage, for as long as it lives: a storage that was handed out is known when it comes back."""

    def __init__(self) -> None:
        self._other: dict[int, torch.UntypedStorage] = {}  # by the address of the storage object
        self._kept: list[torch.UntypedStorage] = []

    def on_device(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if tensor.is_cuda else self._mirror(tensor, DLPACK_CUDA)

    def on_host(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._mirror(tensor, DLPACK_CPU) if tensor.is_cuda else tensor

    def _mirror(self, tensor: torch.Tensor, device: int) -> torch.Tensor:
        """The same tensor on the other side. A view stays a view of its base: compilers ask."""
        if tensor._is_view() and tensor._base is not None and tensor._base.dtype == tensor.dtype:
            base = self._mirror(tensor._base.detach(), device)
            return base.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
        return _tensor_on(self._storage(tensor.untyped_storage(), device), tensor)

    def _storage(self, storage: torch.UntypedStorage, device: int) -> torch.UntypedStorage:
        known = self._other.get(storage._cdata)
        if known is None:
            known = mirrored(storage, device)
            self._other[storage._cdata], self._other[known._cdata] = known, storage
            self._kept += [known, storage]
        return known


def on_device(tensor: torch.Tensor) -> torch.Tensor:
    """As `Memory.on_device`, and forgotten at once."""
    return tensor if tensor.is_cuda else _tensor_on(mirrored(tensor.untyped_storage(), DLPACK_CUDA), tensor)


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    return _tensor_on(mirrored(tensor.untyped_storage(), DLPACK_CPU), tensor) if tensor.is_cuda else tensor


def empty_strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    """What generated code allocates with: memory of the described device."""
    with torch._C._DisableTorchDispatch():
        return on_device(torch.empty_strided(size, stride, dtype=dtype))


def mirrored(storage: torch.UntypedStorage, device: int) -> torch.UntypedStorage:
    """A storage on the other device over the same bytes, which it keeps alive."""
    side = torch.device("cpu") if storage.device.type == "cpu" else CUDA
    raw = _over(storage, side, (storage.nbytes(),), (1,), 0, torch.uint8)
    capsule = torch.utils.dlpack.to_dlpack(raw)
    _dl_device(capsule).type = device
    return torch._C._from_dlpack(capsule).untyped_storage()


def _tensor_on(storage: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    return _over(storage, storage.device, like.size(), like.stride(), like.storage_offset(), like.dtype)  # type: ignore[arg-type]


def _over(storage: torch.UntypedStorage, device: torch.device, size: Any, stride: Any, offset: int, dtype: torch.dtype):  # type: ignore[no-untyped-def]
    if device.type == "cpu":
        return torch.empty(0, dtype=dtype).set_(storage, offset, tuple(size), tuple(stride))
    make = getattr(torch._C, "_construct_CUDA_Tensor_From_Storage_And_Metadata", None)
    if make is None:
        raise Moved("torch._C._construct_CUDA_Tensor_From_Storage_And_Metadata")
    size, stride = tuple(map(int, size)), tuple(map(int, stride))
    return make({"size": size, "stride": stride, "dtype": dtype, "device": CUDA, "storage_offset": offset}, storage)


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _DLTensor(ctypes.Structure):  # the beginning of the stable ABI of DLPack
    _fields_ = [("data", ctypes.c_void_p), ("device", _DLDevice)]


def _dl_device(capsule: Any) -> _DLDevice:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _DLTensor.from_address(get(capsule, b"dltensor")).device

"""Tensors of a described GPU, whose memory is the host's.

`on_device(t)` is a tensor that says `cuda:0` and lies on the same bytes as `t`; `on_host` is the way back. Nothing is
copied: what one writes, the other reads. So Dynamo, AOTAutograd and Inductor see plain CUDA tensors (no fake ones, no
subclass), and the program they make can be given real values. Storage stays shared where it was: two views of one
storage are still that, and a storage that was handed out is recognised when it comes back.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

import torch

from conformance.errors import first_line
from conformance.headless.errors import NotInterpretable
from conformance.headless.seam import seam
from conformance.torch_seam import base_of, storage_key

DLPACK_CPU, DLPACK_CUDA = 1, 2
CUDA = torch.device("cuda", 0)


class Memory:
    """The two sides of each storage, for as long as it lives: a storage that was handed out is known when it comes
    back."""

    def __init__(self) -> None:
        self._other: dict[int, torch.UntypedStorage] = {}  # by the address of the storage object
        self._kept: list[torch.UntypedStorage] = []

    def on_device(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._mirror(tensor, DLPACK_CUDA) if tensor.device.type == "cpu" else tensor

    def on_host(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._mirror(tensor, DLPACK_CPU) if tensor.is_cuda else tensor

    def _mirror(self, tensor: torch.Tensor, device: int) -> torch.Tensor:
        """The same tensor on the other side. A view stays a view of its base: compilers ask."""
        base = base_of(tensor)
        if base is not None and base.dtype == tensor.dtype:
            mirrored_base = self._mirror(base.detach(), device)
            return mirrored_base.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
        return _tensor_on(self._storage(tensor.untyped_storage(), device), tensor)

    def _storage(self, storage: torch.UntypedStorage, device: int) -> torch.UntypedStorage:
        known = self._other.get(storage_key(storage))
        if known is None:
            known = mirrored(storage, device)
            self._other[storage_key(storage)], self._other[storage_key(known)] = known, storage
            self._kept += [known, storage]
        return known


def on_device(tensor: torch.Tensor) -> torch.Tensor:
    """As `Memory.on_device`, and forgotten at once."""
    return tensor if tensor.is_cuda else _tensor_on(mirrored(tensor.untyped_storage(), DLPACK_CUDA), tensor)


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_cuda:
        return tensor
    try:
        storage = tensor.untyped_storage()
    except NotImplementedError as error:  # one of vmap's, which holds another tensor
        raise NotInterpretable(first_line(error)) from error
    return _tensor_on(mirrored(storage, DLPACK_CPU), tensor)


def with_own_memory(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor over a copy of its memory, which can grow."""
    return _tensor_on(tensor.untyped_storage().clone(), tensor)


def empty_strided(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
    """What generated code allocates with: memory of the described device."""
    with seam.no_dispatch():
        return on_device(torch.empty_strided(size, stride, dtype=dtype))


# ------------------------------------------------------------------------------- what C++ does with such memory


@contextlib.contextmanager
def allocated() -> Iterator[None]:
    """Inside, torch's own C++ allocates, copies and reads memory of the described device. It does so where no dispatch
    mode is asked: `torch.tensor(…, device="cuda")` makes its constant there, and Inductor reads one there. So a
    constant is on the device from the start, as on a machine with that GPU, and no copy to the device is traced."""
    library = torch.library.Library("aten", "IMPL")
    try:
        for name, function in ALLOCATOR.items():
            library.impl(name, function, "CUDA", allow_override=True)
        hooks: dict[str, Any] = {
            "may_turn_const": _not_on_device,
            "tensor_text": _text,
            "copy_tensor": _deepcopy,
            "restore_location": _restore,
        }
        with seam.subscribe(**{key: hook for key, hook in hooks.items() if seam.has(key)}):
            yield
    finally:
        seam.close_library(library)


def _not_on_device(proceed: Any, mode: Any, tensor: torch.Tensor) -> bool:
    """Fake tensors that remember their value compute with it, below all modes: nothing computes there on the described
    device."""
    return not tensor.is_cuda and bool(proceed(mode, tensor))


def _text(proceed: Any, tensor: Any, *args: Any, **kwargs: Any) -> str:
    """A tensor is printed, into a log of the compiler's: the host computes how its numbers are written."""
    described = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.is_cuda
    return str(proceed(on_host(tensor.detach()) if described else tensor, *args, **kwargs))


def _restore(proceed: Any, storage: Any, location: str) -> Any:
    """A storage that was saved from the device and is loaded again."""
    return mirrored(storage, DLPACK_CUDA) if location.startswith("cuda") else proceed(storage, location)


def _deepcopy(proceed: Any, tensor: Any, memo: dict[Any, Any]) -> Any:
    """A constant is copied, as AOTAutograd does with a backward graph and all that it holds. Views of one storage stay that."""
    if type(tensor) is not torch.Tensor or not tensor.is_cuda or id(tensor) in memo:
        return proceed(tensor, memo)
    key = "storage", storage_key(tensor.untyped_storage())
    if key not in memo:
        memo[key] = mirrored(mirrored(tensor.untyped_storage(), DLPACK_CPU).clone(), DLPACK_CUDA)
    memo[id(tensor)] = _tensor_on(memo[key], tensor).requires_grad_(tensor.requires_grad)
    return memo[id(tensor)]


def _empty(size: Any, *, dtype: Any = None, memory_format: Any = None, **_: Any) -> torch.Tensor:
    return on_device(
        torch.empty(size, dtype=dtype, memory_format=memory_format or torch.contiguous_format, device="cpu")
    )


def _empty_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> torch.Tensor:
    return on_device(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy(to: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    on_host(to).copy_(on_host(source))
    return to


def _item(tensor: torch.Tensor) -> Any:
    return on_host(tensor).item()


ALLOCATOR = {
    "empty.memory_format": _empty,
    "empty_strided": _empty_strided,
    "copy_": _copy,
    "_local_scalar_dense": _item,
}


# ----------------------------------------------------------------------------------------------------- storages


def mirrored(storage: torch.UntypedStorage, device: int) -> torch.UntypedStorage:
    """A storage on the other device over the same bytes, which it keeps alive."""
    side = torch.device("cpu") if storage.device.type == "cpu" else CUDA
    raw = _over(storage, side, (storage.nbytes(),), (1,), 0, torch.uint8)
    capsule = torch.utils.dlpack.to_dlpack(raw)
    _dl_device(capsule).type = device
    return seam.from_dlpack(capsule).untyped_storage()


def _tensor_on(storage: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    return _over(storage, storage.device, like.size(), like.stride(), int(like.storage_offset()), like.dtype)


def _over(
    storage: torch.UntypedStorage, device: torch.device, size: Any, stride: Any, offset: int, dtype: torch.dtype
) -> Any:
    if device.type == "cpu":
        return torch.empty(0, dtype=dtype).set_(storage, offset, tuple(size), tuple(stride))
    size, stride = tuple(map(int, size)), tuple(map(int, stride))
    return seam.cuda_tensor(
        {"size": size, "stride": stride, "dtype": dtype, "device": CUDA, "storage_offset": offset}, storage
    )


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _DLTensor(ctypes.Structure):  # the beginning of the stable ABI of DLPack
    _fields_ = [("data", ctypes.c_void_p), ("device", _DLDevice)]


def _dl_device(capsule: Any) -> _DLDevice:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _DLTensor.from_address(get(capsule, b"dltensor")).device

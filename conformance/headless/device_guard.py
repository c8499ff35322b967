"""What C++ asks about a device before it touches it: the current device and stream.

torch keeps one object per device type that answers (`c10::impl::device_guard_impl_registry`). CUDA's asks the driver,
even for a tensor that nobody computes with: building an autograd node does, and without a driver it aborts the process.
While a device is described, the answers are those of one idle GPU: device 0, its default stream, no context. They come
from a copy of the guard that torch has for devices with nothing to guard (Meta), in which a few functions are replaced.
(torch does the like for itself where it traces with fake CUDA tensors: `_ensureCUDADeviceGuardSet`.)

Everything is found by what the installed torch says of itself: the order of the virtual functions is read from the
headers of the wheel, the tables by their exported symbols. What is not found raises `MissingName`; nothing is written
before all is found.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch

from conformance.seam import MissingName

CUDA, META = 1, 14  # c10::DeviceType
REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
HOOKS = "_ZN2at6detail12getCUDAHooksEv"

# Functions that return a constant, per machine: 0, 1 (which is also the Device {CUDA, 0}: a byte each), and the Stream
# {Device{CUDA, 0}, id 0}, which fills two registers.
STUBS = {
    "aarch64": {
        "zero": "00008052 c0035fd6",  # mov w0, #0 · ret
        "one": "20008052 c0035fd6",  # mov w0, #1 · ret
        "stream": "20008052 010080d2 c0035fd6",  # mov w0, #1 · mov x1, #0 · ret
    },
    "x86_64": {
        "zero": "31c0 c3",  # xor eax, eax · ret
        "one": "b801000000 c3",  # mov eax, 1 · ret
        "stream": "b801000000 31d2 c3",  # mov eax, 1 · xor edx, edx · ret
    },
}


@contextlib.contextmanager
def idle_gpu() -> Iterator[None]:
    """C++ sees one idle GPU. Autograd runs in the calling thread, since there is no device for a thread of its own."""
    registry, guard, hooks, hooks_table = _tables()
    before, hooks_before = registry[CUDA], hooks[0]
    threads = torch.autograd.set_multithreading_enabled(False)
    try:
        registry[CUDA] = ctypes.addressof(guard)
        hooks[0] = ctypes.addressof(hooks_table)
        with threads:
            yield
    finally:
        registry[CUDA] = before
        hooks[0] = hooks_before


@cache
def _tables() -> tuple:
    """The registry, our guard for it, CUDA's hooks object, and the table of functions it gets for a while."""
    code = _stubs()
    registry = (ctypes.c_void_p * (META + 1)).in_dll(_library("libc10.so"), REGISTRY)
    if not registry[CUDA] or not registry[META]:
        raise _missing("c10::impl::device_guard_impl_registry")
    order = _virtuals("c10/core/impl/DeviceGuardImplInterface.h", "DeviceGuardImplInterface")
    table = _copy(registry[META], len(order))  # type: ignore[arg-type]
    table[_slot(order, "getStream")] = code["stream"]
    for name in ("type", "getDevice", "exchangeDevice", "deviceCount"):
        table[_slot(order, name)] = code["one"]  # CUDA, device 0 of CUDA (twice), one device
    guard = (ctypes.c_void_p * 2)(ctypes.addressof(table), 0)

    get_hooks = _library("libtorch_cpu.so")[HOOKS]
    get_hooks.restype = ctypes.c_void_p
    address = get_hooks()
    order = _virtuals("ATen/detail/AcceleratorHooksInterface.h", "AcceleratorHooksInterface")
    more = _virtuals("ATen/detail/CUDAHooksInterface.h", "CUDAHooksInterface")
    hooks_table = _copy(address, len(order) + len(more))
    hooks_table[_slot(order, "hasPrimaryContext")] = code["zero"]
    hooks = (ctypes.c_void_p * 1).from_address(address)
    guard.keep = (table, code)  # type: ignore[attr-defined]
    return registry, guard, hooks, hooks_table


def _missing(what: str) -> MissingName:
    return MissingName(f"torch {torch.__version__} has no {what}: the suite does not know this version yet")


@cache
def _library(name: str) -> ctypes.CDLL:
    path = Path(torch.__file__).parent / "lib" / name
    if not path.exists():
        raise _missing(f"torch/lib/{name}")
    return ctypes.CDLL(str(path))


def _copy(address: int, length: int) -> ctypes.Array:
    """The table of virtual functions of the object at an address."""
    first = ctypes.c_void_p.from_address(address).value
    assert first
    return (ctypes.c_void_p * length)(*(ctypes.c_void_p * length).from_address(first))


def _virtuals(header: str, struct: str) -> list[str]:
    """The virtual functions of a struct in the order of its table; a destructor takes two places (Itanium C++ ABI)."""
    path = Path(torch.__file__).parent / "include" / header
    if not path.exists():
        raise _missing(f"torch/include/{header}")
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.S)
    found = re.search(rf"struct \w+ {struct}\b[^;{{]*{{(.*?)\n}};", text, flags=re.S)
    if not found:
        raise _missing(struct)
    names = re.findall(r"\bvirtual\s+[\w:<>,&*\s]*?(~?\w+)\s*\(", found.group(1))
    return [place for name in names for place in ([name, name] if name.startswith("~") else [name])]


def _slot(order: list[str], name: str) -> int:
    if order.count(name) != 1:
        raise _missing(name)
    return order.index(name)


@cache
def _stubs() -> dict[str, int]:
    stubs = STUBS.get(platform.machine())
    if stubs is None:
        raise MissingName(
            f"a described GPU needs code for {', '.join(STUBS)}, and this machine is {platform.machine()}"
        )
    if sys.platform != "linux":
        raise MissingName(f"a described GPU needs Linux, and this is {sys.platform}")
    handle = os.memfd_create("conformance-headless")
    try:
        offsets, code = {}, b""
        for name, text in stubs.items():
            offsets[name] = len(code)
            code += bytes.fromhex(text.replace(" ", "")).ljust(16, b"\0")
        os.write(handle, code)
        page = mmap.mmap(handle, len(code), mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC)
    finally:
        os.close(handle)
    start = _address(page)
    return {name: start + offset for name, offset in offsets.items()}


_pages: list[mmap.mmap] = []  # code stays mapped as long as the process: a table may still point at it


def _address(page: mmap.mmap) -> int:
    """Where a read-only map is: ctypes only takes writable buffers, numpy-free by PyObject_GetBuffer."""
    _pages.append(page)
    view = (ctypes.c_byte * 128)()  # a Py_buffer is smaller than this everywhere
    ctypes.pythonapi.PyObject_GetBuffer.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    ctypes.pythonapi.PyObject_GetBuffer(page, ctypes.byref(view), 0)
    address = ctypes.c_void_p.from_buffer(view).value
    assert address
    return address

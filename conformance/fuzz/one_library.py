"""All C++ kernels of a compile in one library, so that the headers, which take most of the C++ compiler's time, are read once.

Inductor builds a library for each kernel. Inside `one_library()` kernels are put together in one source, built when the first
of them is called. They are called through ctypes; what is found this way is played again with Inductor's own way of building.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from conformance.fuzz.seam import seam

HEAD = """#include <exception>
#include <string>
static thread_local std::string last_problem;
extern "C" const char* what_happened() { return last_problem.c_str(); }
"""
KERNEL = """
namespace library_{number} {{
#define kernel kernel_{number}
{body}
#undef kernel
}}
extern "C" int call_{number}({parameters}) {{
    try {{
        library_{number}::kernel_{number}({arguments});
        return 0;
    }} catch (std::exception const& error) {{
        last_problem = error.what();
    }} catch (...) {{
        last_problem = "unhandled error";
    }}
    return 1;
}}
"""
NUMBERS = {"float": ctypes.c_float, "double": ctypes.c_double}


@dataclass
class Library:
    """Kernels that are built together. `sources`: of each, the types of its parameters and its text."""

    sources: list[tuple[Sequence[str], str]] = field(default_factory=list)
    built: Any = None

    def text(self) -> str:
        """One source with all kernels, each in a namespace of its own; every header is included once, at the top."""
        headers: dict[str, None] = {}
        kernels = []
        for number, (types, source) in enumerate(self.sources):
            lines = source.splitlines()
            headers |= dict.fromkeys(line for line in lines if line.startswith("#include"))
            names = [f"arg_{index}" for index in range(len(types))]
            kernels.append(
                KERNEL.format(
                    number=number,
                    body="\n".join(line for line in lines if not line.startswith("#include")),
                    parameters=", ".join(f"{kind} {name}" for kind, name in zip(types, names, strict=True)),
                    arguments=", ".join(names),
                )
            )
        return "\n".join([*headers, HEAD, *kernels])

    def call(self, number: int, *args: Any) -> None:
        if self.built is None:
            self.built = _libraries().load(self.text())
            self.built.what_happened.restype = ctypes.c_char_p
        types, _ = self.sources[number]
        if getattr(self.built, f"call_{number}")(*map(_converted, types, args)):
            raise RuntimeError(self.built.what_happened().decode(errors="replace"))


def _converted(kind: str, value: Any) -> Any:
    """An argument of a kernel as C takes it."""
    if kind.rstrip().endswith("*"):
        return ctypes.c_void_p(value.data_ptr())
    return NUMBERS.get(kind.split()[-1], ctypes.c_int64)(value)


@cache
def _libraries() -> Any:
    """Inductor's cache of libraries, with the flags and the precompiled header that its kernels are built with."""
    owner, header = seam.locate("kernel_header")
    return type(
        "Libraries",
        (seam.libraries,),
        {"cache": {}, "cpp_compile_command_flags": owner.cpp_compile_command_flags, header: vars(owner)[header]},
    )


@contextmanager
def one_library() -> Iterator[None]:
    """Kernels that are compiled inside share libraries: one for all that are defined before the first is called."""
    library = Library()

    def kernel(proceed: Callable[..., Any], compiler: Any, types: Sequence[str], source: str) -> Callable[..., None]:
        nonlocal library
        if library.built is not None:
            library = Library()
        mine, number = library, len(library.sources)
        mine.sources.append((types, source))
        return lambda *args: mine.call(number, *args)

    with seam.subscribe(cpp_kernel=kernel):
        yield


def warm() -> None:
    """Have the headers precompiled, which is done once a process and kept for those that are forked off it."""
    library = Library([(["float*"], '#include <torch/csrc/inductor/cpp_prefix.h>\nextern "C" void kernel(float*) {}')])
    _libraries().load(library.text())

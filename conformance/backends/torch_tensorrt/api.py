"""Everything of torch_tensorrt that is not its public API, in one place.

A name that a release moved makes the backend `unavailable` with a line that says which name it was."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any
from unittest import mock

import torch

from conformance.backends.torch_tensorrt.description import described
from conformance.errors import first_line
from conformance.target import DEVICES


class Moved(Exception):
    """A private name is not where this backend looks for it."""


class Unloadable(Exception):
    """The package is installed and cannot be imported."""


@dataclass(frozen=True)
class Library:
    """The loaded package: what the backend calls and what it wraps."""

    torch_tensorrt: ModuleType
    trt: Any
    compiler: ModuleType  # dynamo._compiler: its globals are the steps of dynamo.compile
    partitioning: ModuleType
    conversion: ModuleType  # dynamo.conversion._conversion
    interpreter: type  # TRTInterpreter
    interpreter_module: ModuleType
    pre_passes: Any  # pass managers with a list `passes`
    post_passes: Any
    converters: Any
    engine_cache: type  # BaseEngineCache
    logger: logging.Logger
    rtx: bool

    @property
    def lifts_buffers(self) -> bool:
        """Since 2.14: mutated buffers become engine inputs, aliased outputs exist."""
        return hasattr(self.compiler, "lift_mutated_buffers")


STEPS = ("pre_export_lowering", "get_decompositions", "post_lowering", "convert_module", "to_torch_device", "compile_module")


@cache
def broken() -> str:
    """Why the installed package cannot be used, in one line; empty when it can. Imports it, once."""
    try:
        library()
    except (Moved, Unloadable) as error:
        return str(error)
    return ""


@cache
def library() -> Library:
    """Import torch_tensorrt; without a GPU its questions about one are answered from a description."""
    if "torch_tensorrt" not in sys.modules:
        _import()
    package = importlib.import_module("torch_tensorrt")
    at = "torch_tensorrt.dynamo"
    compiler = _module(f"{at}._compiler")
    for step in STEPS:
        _attribute(compiler, step)
    partitioning = _module(f"{at}.partitioning")
    for name in ("fast_partition", "global_partition"):
        _attribute(partitioning, name)
    conversion = _module(f"{at}.conversion._conversion")
    _attribute(conversion, "interpret_module_to_result")
    interpreting = _module(f"{at}.conversion._TRTInterpreter")
    interpreter = _attribute(interpreting, "TRTInterpreter")
    for name in ("run_node", "_construct_trt_network_def", "_populate_trt_builder_config"):
        _attribute(interpreter, name)
    lowering = _module(f"{at}.lowering.passes._aten_lowering_pass")
    managers = [_attribute(lowering, f"ATEN_{when}_LOWERING_PASSES") for when in ("PRE", "POST")]
    for manager in managers:
        _attribute(manager, "passes")
    return Library(
        torch_tensorrt=package,
        trt=_attribute(interpreting, "trt"),
        compiler=compiler,
        partitioning=partitioning,
        conversion=conversion,
        interpreter=interpreter,
        interpreter_module=interpreting,
        pre_passes=managers[0],
        post_passes=managers[1],
        converters=_attribute(_module(f"{at}.conversion._ConverterRegistry"), "DYNAMO_CONVERTERS"),
        engine_cache=_attribute(_module(f"{at}._engine_cache"), "BaseEngineCache"),
        logger=_attribute(_module("torch_tensorrt.logging"), "_LOGGER"),
        rtx=bool(_attribute(_module("torch_tensorrt._features"), "ENABLED_FEATURES").tensorrt_rtx),
    )


def _import() -> None:
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(_quiet())
        stack.enter_context(_without_broken_plugin())
        if not torch.cuda.is_available():
            stack.enter_context(described(DEVICES["sm_90"]))
        try:
            importlib.import_module("torch_tensorrt")
        except Exception as error:
            raise Unloadable(f"torch_tensorrt does not import: {first_line(error)}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """The import warns on the root logger of optional packages that nobody asked for."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _without_broken_plugin() -> Iterator[None]:
    """The folder `tensorrt_rtx/plugin` of TensorRT-RTX 1.4 imports a module that its own wheel lacks, and the mere question
    whether `tensorrt.plugin` exists imports it. RTX has no such plugins: the answer is no."""
    real = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> Any:
        if name.startswith("tensorrt.plugin") and real("tensorrt_rtx") is not None:
            return None
        return real(name, package)

    with mock.patch.object(importlib.util, "find_spec", find_spec):
        yield


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Moved(f"torch_tensorrt moved the module {name}; this backend knows 2.11 to 2.14") from None


def _attribute(owner: Any, name: str) -> Any:
    if not hasattr(owner, name):
        where = getattr(owner, "__name__", type(owner).__name__)
        raise Moved(f"torch_tensorrt moved {where}.{name}; this backend knows 2.11 to 2.14")
    return getattr(owner, name)

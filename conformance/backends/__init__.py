"""The backends: our own, and whatever is installed under the entry point group `conformance.backends`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from conformance.backends.base import Backend, CannotRun, Case, Compiled, all_unavailable
from conformance.errors import UsageError, first_line, unknown

__all__ = ["Backend", "CannotRun", "Case", "Compiled", "all_unavailable", "default_backends", "get", "names"]

GROUP = "conformance.backends"
BUILTIN = {
    "eager": "conformance.backends.eager:EagerBackend",
    "inductor": "conformance.backends.inductor.backend:InductorBackend",
    "inductor_cudagraphs": "conformance.backends.inductor.variants:CudagraphsBackend",
    "inductor_max_autotune": "conformance.backends.inductor.variants:MaxAutotuneBackend",
    "inductor_autograd": "conformance.backends.inductor.variants:CompiledAutogradBackend",
    "inductor_aot": "conformance.backends.inductor.variants:AheadOfTimeBackend",
    "torch_tensorrt": "conformance.backends.torch_tensorrt:TorchTensorRTBackend",
    "autodeploy": "conformance.backends.autodeploy:AutoDeployBackend",
}


def _sources() -> dict[str, str]:
    """Where each backend is. Ours are listed, so that a checkout on PYTHONPATH works without being installed."""
    return {**BUILTIN, **{entry.name: entry.value for entry in entry_points(group=GROUP)}}


def names() -> list[str]:
    return list(_sources())


def default_backends() -> list[str]:
    """The backends of a run that names none: the compilers that are installed, without the reference and the variants."""
    return [name for name in names() if get(name).variant_of is None and get(name).versions()]


@cache
def get(name: str) -> Backend:
    sources = _sources()
    if name not in sources:
        raise unknown("backend", name, sources)
    module, _, attribute = sources[name].partition(":")
    try:
        return getattr(import_module(module), attribute)()
    except Exception as error:
        raise UsageError(f"backend {name!r} ({sources[name]}) does not load: {first_line(error)}") from None

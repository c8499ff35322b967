"""The cache stage: OpenVINO's model cache, which is off by default, turned on with a folder of its own."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from conformance import oracle
from conformance.backends.base import Case
from conformance.trace import Observation
from conformance_openvino.watch import Watch, forget, watching

if TYPE_CHECKING:
    from conformance_openvino.backend import OpenVINOBackend


def observe(backend: OpenVINOBackend, case: Case) -> Observation:
    """Compile with an empty cache, then again: the models must come from the folder, and compute the same."""
    module = case.module()
    ref = oracle.reference(
        module, case.inputs(0), random=case.micrograph.contract.runtime.random, calls=case.micrograph.steps
    )
    facts: dict[str, Any] = {"differs": {}}
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        for which in ("first", "again"):
            counts, outcome = _compiled(backend, case, folder)
            facts[which] = {name: count for name, count in counts.items() if count}
            if differences := oracle.compare(outcome, ref):
                facts["differs"][which] = str(differences[0])
    return Observation(facts)


def _compiled(backend: OpenVINOBackend, case: Case, folder: str) -> tuple[dict[str, int], oracle.Outcome]:
    forget()
    module, watch = case.module(), Watch()
    options = {"model_caching": True, "cache_dir": folder}
    with watching(watch):
        fn = backend.compile_entry(module, **case.micrograph.options, openvino=options)
        call = lambda *inputs: fn(*backend.marked(case, inputs))
        outcome = oracle.run(call, case.inputs(0), module, calls=case.micrograph.steps)
    return {"model_hit": watch.models_read, "model_miss": watch.models_compiled - watch.models_read}, outcome

"""The oracle: what eager did, what the compiler did, and where they differ.

Upstream's rules for bug reports are kept: the reference is computed in fp64, a result is wrong only if it is further from that than
eager's own result in the same dtype, and random numbers come from equal seeds.
"""

from __future__ import annotations

from conformance.oracle.comparison import (
    Difference,
    compare,
    compare_form,
    mutated,
    same_strides,
    signature,
    survived,
    value_differences,
)
from conformance.oracle.outcome import SEED, Outcome, clone_inputs, play, run, seed, state_kept
from conformance.oracle.reference import (
    InDouble,
    Reference,
    device_draws,
    device_lost,
    in_double,
    modes_in_force,
    of_control_flow,
    played,
    reference,
    widened,
)
from conformance.oracle.snapshot import snapshot

__all__ = [
    "SEED",
    "Difference",
    "InDouble",
    "Outcome",
    "Reference",
    "clone_inputs",
    "compare",
    "compare_form",
    "device_draws",
    "device_lost",
    "in_double",
    "modes_in_force",
    "mutated",
    "of_control_flow",
    "play",
    "played",
    "reference",
    "run",
    "same_strides",
    "seed",
    "signature",
    "snapshot",
    "state_kept",
    "survived",
    "value_differences",
    "widened",
]

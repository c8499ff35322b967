"""What a described GPU cannot do."""

from __future__ import annotations

from conformance.backends.base import CannotRun


class NotInterpretable(CannotRun):
    """The generated program does something that cannot be run on the CPU, and why."""


class KernelFault(RuntimeError):
    """What a GPU answers with an error, at once or when it is unlucky: an assert of the kernel's that fails, or an access to memory that
    none of its tensors has."""

"""The private names of torch that the operator sweep uses: the operator database, and AOTAutograd as a backend of torch.compile."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch

from conformance.errors import UsageError
from conformance.seam import Name, Seam
from conformance.stage import Stage

NO_STAGE: tuple[Stage, ...] = ()
NAMES = {
    "op_db": Name("torch.testing._internal.common_methods_invocations:op_db", NO_STAGE),
    "custom_op_db": Name("torch.testing._internal.custom_op_db:custom_op_db", NO_STAGE),
    "hop_db": Name("torch.testing._internal.hop_db:hop_db", NO_STAGE),
    "seeded_call": Name("torch.testing._internal.common_methods_invocations:wrapper_set_seed", NO_STAGE),
    "tolerances": Name("torch.testing._internal.common_device_type:toleranceOverride", NO_STAGE),
    "elementwise_unary": Name("torch.testing._internal.opinfo.core:UnaryUfuncInfo", NO_STAGE),
    "elementwise_binary": Name("torch.testing._internal.opinfo.core:BinaryUfuncInfo", NO_STAGE),
    "reduction": Name("torch.testing._internal.opinfo.core:ReductionOpInfo", NO_STAGE),
    "aot_autograd": Name("torch._dynamo.backends.common:aot_autograd", (Stage.DECOMPOSITION,)),
    "partition": Name("functorch.compile:min_cut_rematerialization_partition", (Stage.DECOMPOSITION,)),
    "boxed": Name("functorch.compile:make_boxed_func", (Stage.DECOMPOSITION,)),
    "unsupported": Name("torch._dynamo.exc:Unsupported", NO_STAGE),
}
seam = Seam("torch", lambda: str(torch.__version__), NAMES)


DATABASES = ("op_db", "custom_op_db", "hop_db")  # operators, operators of one's own, operators that take functions


def database() -> list[object]:
    """Every OpInfo of this torch. It needs `expecttest`, which torch does not install."""
    try:
        import expecttest  # noqa: F401
    except ImportError:
        raise UsageError(
            "torch.testing's operator database needs the package expecttest: pip install expecttest"
        ) from None
    # Importing the database says that there is no CUDA runtime, which a sweep does not ask for.
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
    # The database sets a seed around random operators and restores the generator. That breaks the graph, so that the operator itself is
    # not compiled; a user does not write it.
    owner, name = seam.locate("seeded_call")
    setattr(owner, name, _called)
    return [info for name in DATABASES if seam.has(name) for info in getattr(seam, name)]


def home_of(info: object) -> tuple[str, str]:
    """The module and the name of the database that an OpInfo stands in; those of a test stand in the first."""
    for name in DATABASES[1:]:
        if seam.has(name) and any(one is info for one in getattr(seam, name)):
            return NAMES[name].path.partition(":")[0], name
    return NAMES[DATABASES[0]].path.partition(":")[0], DATABASES[0]


def _called(operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return operator(*args, **kwargs)

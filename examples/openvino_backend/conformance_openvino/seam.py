"""The private names of OpenVINO and Dynamo that this adapter relies on."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from conformance.seam import Name, Seam
from conformance.stage import STAGES, Stage

TORCHDYNAMO = "openvino.frontend.pytorch.torchdynamo"
COMPILE = STAGES[: Stage.RUNTIME.order]
FROM_FUSION = (Stage.FUSION, Stage.CODEGEN, Stage.RUNTIME, Stage.CACHE)


def installed() -> str:
    """OpenVINO's version, "" where it is not installed."""
    try:
        return version("openvino")
    except PackageNotFoundError:
        return ""


seam = Seam(
    "openvino",
    installed,
    {
        "counters": Name("torch._dynamo.utils:counters", (Stage.CAPTURE,)),
        "has_kernel": Name("torch._C:_dispatch_has_kernel_for_dispatch_key", (Stage.DECOMPOSITION,)),
        # What Dynamo captured comes in, the program that runs goes out.
        "compile_graph": Name(f"{TORCHDYNAMO}.backend:fx_openvino", STAGES, hook=True),
        # Where OpenVINO raises while it compiles, it hands the captured graph to Inductor and says so only in a debug log.
        "inductor": Name(f"{TORCHDYNAMO}.backend:compile_fx", FROM_FUSION),
        # The ATen graph comes in, the same graph with its partitions as submodules goes out.
        "partition": Name(f"{TORCHDYNAMO}.partition:Partitioner.make_partitions", COMPILE),
        # One partition is converted (at its first call) and run. Where that raises, the partition runs in torch from then on.
        "execute": Name(f"{TORCHDYNAMO}.execute:openvino_execute", FROM_FUSION),
        "compile_model": Name(f"{TORCHDYNAMO}.compile:Core.compile_model", (Stage.CODEGEN, Stage.CACHE)),
        "read_model": Name(f"{TORCHDYNAMO}.compile:Core.read_model", (Stage.CACHE,)),
        "clear_caches": Name(f"{TORCHDYNAMO}.execute:clear_caches"),
        "request_cache": Name(f"{TORCHDYNAMO}.execute:req_cache"),
    },
)

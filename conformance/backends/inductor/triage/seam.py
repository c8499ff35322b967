"""Names of torch that hold programs which a script exports, or compiles ahead of time."""

from __future__ import annotations

import torch

from conformance.seam import Name, Seam

seam = Seam(
    "torch",
    lambda: str(torch.__version__),
    {
        "export": Name("torch.export:export", ()),
        "compile_package": Name("torch._inductor:aoti_compile_and_package", ()),
        "load_package": Name("torch._inductor:aoti_load_package", ()),
    },
)

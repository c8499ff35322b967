"""Ten small models of transformers as programs to triage: as `FILE.py:model` and inside a script, in `eval()` and in
training. `transformers_models.py` builds them."""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).parent
MODELS = ("llama", "qwen3", "mixtral", "gpt2", "bert", "t5", "vit", "whisper", "mamba", "clip")
OBJECT = """
from transformers_models import build

model, example_inputs = build("{name}", {training})
"""
SCRIPT = """
import copy
import sys

import torch
import torch._inductor.config
from torch.utils._pytree import tree_leaves
from transformers_models import build

torch._inductor.config.fallback_random = True  # dropout as in eager
model, inputs = build("{name}", {training})
other = copy.deepcopy(model)


def seen(model, call):
    torch.manual_seed(0)
    with torch.set_grad_enabled({training}):
        found = [x for x in tree_leaves(call(*inputs)) if isinstance(x, torch.Tensor)]
    if {training}:
        sum(x.square().mean() for x in found if x.requires_grad).backward()
    return [x.detach() for x in found] + [p.grad for p in model.parameters() if p.grad is not None]


want, got = seen(model, model), seen(other, torch.compile(other))
same = [torch.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(want, got, strict=True)]
print(len(same), "tensors,", same.count(False), "differ")
sys.exit(not all(same))
"""
FORMS = {
    f"{name}-{mode}-{form}": (name, mode == "training", form)
    for form, mode in (("object", "training"), ("script", "eval"), ("script", "training"), ("object", "eval"))
    for name in MODELS
}
NAMES = tuple(FORMS)


def write(program: str, folder: Path) -> str:
    """Writes one program of `NAMES` into `folder`; what `conformance triage` is given for it."""
    name, training, form = FORMS[program]
    shutil.copy(HERE / "transformers_models.py", folder)
    file = folder / f"{name}.py"
    file.write_text((OBJECT if form == "object" else SCRIPT).format(name=name, training=training))
    return f"{file}:model" if form == "object" else str(file)

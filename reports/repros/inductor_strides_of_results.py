"""Results that are stored in another order than eager's: cat and stack of a tensor with itself, one_hot, rrelu, a batch norm of a
transposed sequence, losses of a permuted image; in torch 2.11 roll and padding, in 2.15 index_select and cross. See pytorch#197109."""

import torch
from torch.nn import functional as F

image = torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last)
volume = torch.randn(1, 4, 4, 6, 6).to(memory_format=torch.channels_last_3d)
three = torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)
classes = torch.randint(0, 3, (2, 4, 6, 6)).to(memory_format=torch.channels_last)
scores = torch.randn(2, 6, 5, 4).permute(0, 3, 1, 2)
target = torch.randint(0, 4, (2, 6, 5))
CALLS = {
    "cat": lambda: torch.cat([image, image], 1),
    "stack": lambda: torch.stack([image, image], 2),
    "cat of volumes": lambda: torch.cat([volume, volume], 1),
    "one_hot": lambda: F.one_hot(classes, 3),
    "rrelu": lambda: F.rrelu(image, training=True),
    "batch_norm": lambda: F.batch_norm(torch.ones(2, 6, 4).transpose(1, 2), None, None, training=True),
    "nll_loss": lambda: F.nll_loss(scores, target, reduction="none"),
    "cross_entropy": lambda: F.cross_entropy(scores, target, reduction="none"),
    "roll": lambda: image.roll(1, 2),
    "replicate": lambda: F.pad(image, (1, 2, 2, 1), mode="replicate"),
    "reflect of a volume": lambda: F.pad(volume, (1, 1, 1, 1, 1, 1), mode="reflect"),
    "nearest of a volume": lambda: F.interpolate(volume, scale_factor=2),
    "index_select": lambda: image.index_select(1, torch.tensor([0, 2])),
    "cross": lambda: torch.linalg.cross(three, three.flip(0), dim=1),
}

found = []
for name, call in CALLS.items():
    torch._dynamo.reset()
    if (want := call().stride()) != (got := torch.compile(call)().stride()):
        found.append(f"{name} {got}, eager {want}")
if found:
    raise SystemExit(f"torch {torch.__version__}: strides: " + "; ".join(found))

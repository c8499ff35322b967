"""Graphs that nobody chose, for the comparison with a real GPU: the fuzzer's, and models of random sizes.

The graphs of a seed are always the same. Every second graph of the fuzzer asks for gradients, where nothing is written in place;
every fourth one is a model, in training, forward and backward.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from conformance.fuzz import graph_gen
from conformance.fuzz.graph import keep, with_name
from conformance.micrograph import Micrograph

OF_A_SEED = 100_000  # graphs that the fuzzer numbers for one seed
SIZES = (3, 4, 6, 8, 12, 16, 17, 24, 31, 32, 48, 64, 100, 128)
HEAD = """import torch
from torch import nn
from torch.nn import functional as F

from conformance.micrograph import Contract, Micrograph, Tensor


class NAME(Micrograph):
    \"\"\"A model of random sizes.\"\"\"

    inputs = ({inputs},)
    contract = Contract()

    def __init__(self) -> None:
        super().__init__()
{init}

    def forward(self, {names}):
{forward}
"""


@dataclass(frozen=True)
class Model:
    """The text of a model. `{b}` batch, `{s}` length, `{h}` heads, `{d}` width (a multiple of the heads), `{f}` inner width,
    `{n}` classes, `{w}` pixels a side, `{act}` an activation, `{flag}` True or False."""

    inputs: str
    init: str
    forward: str
    names: str = "x"


SEQUENCE = 'Tensor("{b} {s} {d}", grad=True)'
PICTURE = 'Tensor("{b} 3 {w} {w}", grad=True)'
LABELS = 'Tensor("{b}", torch.int64, fill="index:{n}")'
MODELS = {
    "encoder": Model(
        SEQUENCE,
        "self.layer = nn.TransformerEncoderLayer({d}, {h}, {f}, 0.0, '{act}', batch_first=True, norm_first={flag})",
        "return self.layer(x)",
    ),
    "decoder": Model(
        SEQUENCE + ", " + SEQUENCE,
        "self.layer = nn.TransformerDecoderLayer({d}, {h}, {f}, 0.0, '{act}', batch_first=True, norm_first={flag})",
        "return self.layer(x, memory)",
        "x, memory",
    ),
    "attention": Model(
        SEQUENCE,
        "self.qkv = nn.Linear({d}, 3 * {d}, bias={flag})\nself.out = nn.Linear({d}, {d})",
        "q, k, v = self.qkv(x).view({b}, {s}, 3, {h}, {d} // {h}).permute(2, 0, 3, 1, 4)\n"
        "weights = torch.softmax((q @ k.transpose(-1, -2)) * ({d} // {h}) ** -0.5, -1)\n"
        "return self.out((weights @ v).transpose(1, 2).reshape({b}, {s}, {d})) + x",
    ),
    "rotary": Model(
        SEQUENCE,
        "self.norm = nn.RMSNorm({d})\nself.up = nn.Linear({d}, 2 * {f}, bias=False)\nself.down = nn.Linear({f}, {d}, bias=False)",
        "angle = torch.arange({s}, device=x.device)[:, None] * torch.tensor([1.0, 0.1], device=x.device).repeat({d} // 2)[: {d}]\n"
        "left, right = x[..., : {d} // 2], x[..., {d} // 2 :]\n"
        "turned = x * angle.cos() + torch.cat([-right, left], -1)[..., : {d}] * angle.sin()\n"
        "gate, value = self.up(self.norm(turned)).chunk(2, -1)\n"
        "return turned + self.down(F.silu(gate) * value)",
    ),
    "stem": Model(
        PICTURE,
        "self.conv = nn.Conv2d(3, {c}, 3, stride=2, padding=1, bias={flag})\nself.norm = nn.BatchNorm2d({c})\n"
        "self.more = nn.Conv2d({c}, {c}, 3, padding=1)",
        "y = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)\nreturn F.{act}(self.more(y) + y).mean((2, 3))",
    ),
    "separable": Model(
        PICTURE,
        "self.deep = nn.Conv2d(3, 3, 3, padding=1, groups=3)\nself.wide = nn.Conv2d(3, {c}, 1)\nself.norm = nn.GroupNorm(1, {c})\n"
        "self.squeeze = nn.Linear({c}, {c})",
        "y = F.hardswish(self.norm(self.wide(self.deep(x))))\n"
        "return y * torch.sigmoid(self.squeeze(y.mean((2, 3))))[:, :, None, None]",
    ),
    "patches": Model(
        PICTURE,
        "self.cut = nn.Conv2d(3, {d}, 4, stride=4)\nself.first = nn.Parameter(torch.zeros(1, 1, {d}))\nself.norm = nn.LayerNorm({d})\n"
        "self.head = nn.Linear({d}, {n})",
        "y = self.cut(x).flatten(2).transpose(1, 2)\ny = torch.cat([self.first.expand({b}, -1, -1), y], 1)\n"
        "return self.head(self.norm(y)[:, 0])",
    ),
    "classifier": Model(
        'Tensor("{b} {d}", grad=True), ' + LABELS,
        "self.inner = nn.Linear({d}, {f})\nself.head = nn.Linear({f}, {n})",
        "logits = self.head(F.{act}(self.inner(x)))\nreturn F.cross_entropy(logits, label, label_smoothing={smoothing})",
        "x, label",
    ),
    "loss": Model(
        'Tensor("{b} {n}", grad=True), ' + LABELS,
        "self.weight = nn.Parameter(torch.ones({n}))",
        "loss = F.cross_entropy(x * 2.0, label, label_smoothing={smoothing})\n"
        "return loss + F.kl_div(F.log_softmax(x, -1), torch.softmax(x.detach() * 0.5, -1), reduction='batchmean')",
        "x, label",
    ),
    "language": Model(
        'Tensor("{b} {s}", torch.int64, fill="index:{n}")',
        "self.words = nn.Embedding({n}, {d})\nself.norm = nn.LayerNorm({d})",
        "hidden = self.norm(self.words(x))\nlogits = hidden @ self.words.weight.t()\n"
        "return F.cross_entropy(logits[:, :-1].reshape(-1, {n}), x[:, 1:].reshape(-1))",
    ),
    "experts": Model(
        'Tensor("{s} {d}", grad=True)',
        "self.gate = nn.Linear({d}, 4)\nself.up = nn.Parameter(torch.randn(4, {d}, {f}) * 0.1)\n"
        "self.down = nn.Parameter(torch.randn(4, {f}, {d}) * 0.1)",
        "weight, which = torch.topk(torch.softmax(self.gate(x), -1), 2)\n"
        "share = torch.zeros({s}, 4, device=x.device).scatter(1, which, weight / weight.sum(-1, keepdim=True))\n"
        "return torch.einsum('se,esd->sd', share, F.{act}(torch.einsum('sd,edf->esf', x, self.up)) @ self.down)",
    ),
    "optimizer": Model(
        'Tensor("{f} {d}"), Tensor("{f} {d}"), Tensor("{f} {d}"), Tensor("{f} {d}")',
        "self.rate = {smoothing} + 0.01",
        "mean = mean.lerp(gradient, 0.1)\nsquare = (square.abs() * 0.999).addcmul(gradient, gradient, value=0.001)\n"
        "norm = torch.linalg.vector_norm(gradient)\n"
        "return weight * (1 - self.rate) - self.rate * mean / (square.sqrt() + 1e-8) / norm.clamp(min=1.0), mean, square",
        "weight, gradient, mean, square",
    ),
    "upsampling": Model(
        PICTURE,
        "self.down = nn.Conv2d(3, {c}, 3, stride=2, padding=1)\nself.up = nn.ConvTranspose2d({c}, 3, 2, stride=2)\n"
        "self.norm = nn.InstanceNorm2d({c}, affine=True)",
        "y = self.up(F.leaky_relu(self.norm(self.down(x)), 0.2))\nreturn y + F.interpolate(x, size=y.shape[-2:], mode='{mode}')",
    ),
    "recurrent": Model(
        'Tensor("{b} 5 {d}", grad=True)',
        "self.cell = nn.GRUCell({d}, {f})",
        "state = x.new_zeros({b}, {f})\nfor step in range(5):\n    state = self.cell(x[:, step], state)\nreturn state",
    ),
    "mixer": Model(
        SEQUENCE,
        "self.norm = nn.LayerNorm({d})\nself.along = nn.Linear({s}, {s})\nself.across = nn.Linear({d}, {d})\nself.drop = nn.Dropout(0.0)",
        "y = x + self.drop(self.along(self.norm(x).transpose(1, 2)).transpose(1, 2))\nreturn y + F.{act}(self.across(self.norm(y)))",
    ),
}


def drawn(count: int, seed: int) -> dict[str, Callable[[], type[Micrograph]]]:
    """So many graphs of this seed, by name; each is made when it is asked for."""
    return {f"generated.seed_{seed}.{index}": partial(_drawn, seed, index) for index in range(count)}


def _drawn(seed: int, index: int) -> type[Micrograph]:
    return _model(seed, index) if index % 4 == 3 else _graph(seed, index)


def _graph(seed: int, index: int) -> type[Micrograph]:
    graph = graph_gen.graph(seed * OF_A_SEED + index)
    source = graph.source()
    if index % 2 and all(line.name for line in graph.lines):
        source = re.sub(r'Tensor\(("[^"]*"(?:, torch\.(?:bfloat16|float\d+))?)\)', r"Tensor(\1, grad=True)", source)
    return keep(source)


def _model(seed: int, index: int) -> type[Micrograph]:
    rng = random.Random(f"{seed} {index}")
    model = MODELS[rng.choice(sorted(MODELS))]
    heads = rng.choice((1, 2, 4))
    values = {
        "b": rng.choice((1, 2, 3, 8)),
        "s": rng.choice(SIZES),
        "h": heads,
        "d": heads * 2 * rng.choice((4, 5, 8, 16, 32)),
        "f": rng.choice(SIZES),
        "n": rng.choice((10, 33, 128, 1000)),
        "w": rng.choice((16, 20, 32)),
        "c": rng.choice((4, 6, 16)),
        "act": rng.choice(("relu", "gelu")),
        "flag": rng.choice((True, False)),
        "smoothing": rng.choice((0.0, 0.1)),
        "mode": rng.choice(("nearest", "bilinear")),
    }
    body = {name: text.format_map(values) for name, text in vars(model).items()}
    text = HEAD.format(
        inputs=body["inputs"],
        init="\n".join(" " * 8 + line for line in body["init"].splitlines()),
        names=body["names"],
        forward="\n".join(" " * 8 + line for line in body["forward"].splitlines()),
    )
    return keep(with_name(text, "Model"))

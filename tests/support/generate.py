"""Writes synthetic records: as many cells as asked for, the same for the same seed, with texts that look like a
compiler's.

python tests/support/generate.py run.jsonl --cells 100000 --torch 2.15.0 --moved 0.02
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

STAGES = ("capture", "decomposition", "postgrad", "fusion", "codegen", "runtime", "cache")
COLUMNS = (
    ("autodeploy", "cpu"),
    ("autodeploy", "cuda"),
    ("eager", "cpu"),
    ("inductor", "cpu"),
    ("inductor", "cuda"),
    ("inductor", "sm_80"),
    ("inductor", "sm_90"),
    ("inductor", "sm_100"),
    ("inductor", "sm_120"),
    ("torch_tensorrt", "cuda"),
    ("torch_tensorrt", "sm_90"),
    ("torch_tensorrt", "sm_100"),
)
FAMILIES = (
    "attention",
    "dynamic",
    "indexing",
    "kv_cache",
    "matmul",
    "mlp",
    "moe",
    "mutation",
    "norm",
    "pointwise",
    "quant",
    "reduction",
    "views",
)
NOUNS = (
    "add_rmsnorm",
    "swiglu",
    "sdpa_causal",
    "rope",
    "softmax",
    "layernorm",
    "gather",
    "bias_gelu",
    "scatter",
    "cumsum",
    "topk",
    "conv",
)
KINDS = {
    "capture": ("graph_break", "CAP001", "2 graph breaks, contract allows 0"),
    "decomposition": ("undecomposed", "DEC001", "aten.native_layer_norm is still in the graph"),
    "postgrad": ("match_loss", "PGR001", "0 matches of add_rmsnorm, contract says 1"),
    "fusion": ("unfused", "FUS001", "2 kernels, contract allows 1"),
    "codegen": ("bad_code", "COD001", "the source does not compile"),
    "runtime": ("wrong_result", "RUN004", "output 0 differs from fp64 by 0.13"),
    "cache": ("cache_miss", "CCH002", "a second compile missed"),
}

GRAPH = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[2, 8, 64]", arg1_1: "f32[2, 8, 64]", arg2_1: "f32[64]"):
        # File: norm.py:31 in forward, code: hidden = x + residual
        add: "f32[2, 8, 64]" = torch.ops.aten.add.Tensor(arg0_1, arg1_1);  arg0_1 = arg1_1 = None
        pow_1: "f32[2, 8, 64]" = torch.ops.aten.pow.Tensor_Scalar(add, 2)
        mean: "f32[2, 8, 1]" = torch.ops.aten.mean.dim(pow_1, [-1], True);  pow_1 = None
        add_1: "f32[2, 8, 1]" = torch.ops.aten.add.Scalar(mean, 1e-{n:02d});  mean = None
        rsqrt: "f32[2, 8, 1]" = torch.ops.aten.rsqrt.default(add_1);  add_1 = None
        mul: "f32[2, 8, 64]" = torch.ops.aten.mul.Tensor(add, rsqrt);  rsqrt = None
        mul_1: "f32[2, 8, 64]" = torch.ops.aten.mul.Tensor(mul, arg2_1);  mul = arg2_1 = None
        return (mul_1, add)
"""
FUSED = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[2, 8, 64]", arg1_1: "f32[2, 8, 64]", arg2_1: "f32[64]"):
        # File: norm.py:31 in forward, code: hidden = x + residual
        add_rmsnorm = torch.ops.fused.add_rmsnorm.default(arg0_1, arg1_1, arg2_1, 1e-{n:02d});  arg0_1 = arg1_1 = None
        getitem: "f32[2, 8, 64]" = add_rmsnorm[0]
        getitem_1: "f32[2, 8, 64]" = add_rmsnorm[1];  add_rmsnorm = None
        return (getitem, getitem_1)
"""
CODE = '''import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers

@triton.jit
def triton_per_fused_add_mean_mul_pow_rsqrt_{n}(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, r0_numel, XBLOCK):
    """Residual add and RMSNorm in one kernel."""
    xoffset = tl.program_id(0) * XBLOCK  # one program a row
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    tmp0 = tl.load(in_ptr0 + (r0_1 + 64 * x0), xmask, other=0.0)
    tmp6 = tl.sum(tl.where(xmask, tmp0 * tmp0, 0), 1)[:, None]
    tmp11 = libdevice.rsqrt(tmp6 / 64.0 + 1e-06)
    tl.store(out_ptr0 + (r0_1 + 64 * x0), tmp0 * tmp11, xmask)
'''


def names(count: int) -> list[str]:
    found = []
    for k in range(count):
        round_, noun = divmod(k // len(FAMILIES), len(NOUNS))
        found.append(f"{FAMILIES[k % len(FAMILIES)]}.{NOUNS[noun]}_{round_}")
    return sorted(found)


def facts(stage: str, dice: random.Random) -> dict[str, Any]:
    return {
        "capture": {
            "graphs": 1,
            "breaks": 0,
            "guards": dice.randint(8, 14),
            "ops": {"add": 1, "mul": dice.randint(1, 3)},
        },
        "decomposition": {"ops": {"aten.add": 2, "aten.mul": 2, "aten.rsqrt": 1}, "written_inputs": 0},
        "postgrad": {"matches": {"add_rmsnorm": 1, "linear_bias": dice.randint(0, 1)}},
        "fusion": {"kernels": dice.randint(1, 3), "library": 0, "groups": ["add_mean_mul_pow_rsqrt"]},
        "codegen": {
            "programs": 1,
            "code_digest": f"{dice.getrandbits(64):016x}",
            "registers": dice.randint(20, 60),
            "spills": 0,
        },
        "runtime": {"max_error": round(dice.random() * 1e-6, 9), "outputs": 2, "mutates": []},
        "cache": {"first": {"misses": 1}, "again": {"hits": 1}, "key_digest": f"{dice.getrandbits(64):016x}"},
    }[stage]


def verdicts(backend: str, dice: random.Random) -> list[str]:
    """Seven verdicts of one compile: after one that fails, the others are blocked."""
    found: list[str] = []
    for stage in STAGES:
        if found and found[-1] in ("fail", "error", "timeout", "blocked", "unsupported"):
            found.append("blocked")
            continue
        if backend == "eager":
            found.append("pass" if stage == "runtime" else "unsupported" if stage == "capture" else "blocked")
            continue
        weights = {
            "pass": 92,
            "fail": 1.6,
            "fallback": 0.8,
            "xfail": 1,
            "unsupported": 0.6,
            "unavailable": 3,
            "error": 0.2,
            "timeout": 0.1,
            "xpass": 0.1,
        }
        found.append(dice.choices(list(weights), list(weights.values()))[0])
    return found


def generate(
    path: Path,
    cells: int,
    *,
    seed: int = 0,
    torch: str = "2.14.1",
    moved: float = 0.0,
    variety: int = 40,
    started: str = "2026-11-15T00:00:00",
) -> Path:
    """`moved`: the part of the compiles that differ from what the seed alone would give."""
    per = len(COLUMNS) * len(STAGES)
    rows = names(-(-cells // per))
    digests = _texts(path.with_suffix(".texts"), variety)
    left = cells
    backends = {backend: {"torch": torch} for backend, _ in COLUMNS} | {
        "torch_tensorrt": {"torch_tensorrt": torch, "torch": torch}
    }
    header = {
        "schema": "conformance/2",
        "suite": "4f2c9b1",
        "env": {"torch": torch, "python": "3.11.7", "machine": "x86_64", "backends": backends},
        "argv": ["conformance", "run", "--record", path.name],
        "started": started,
        "expectations": "77aa01",
    }
    with path.open("w", encoding="utf-8") as out:
        out.write(json.dumps(header) + "\n")
        for row in rows:
            for backend, target in COLUMNS:
                name = f"{backend}/{target}/{row}"
                dice = random.Random(f"{seed}/{name}")
                if moved and random.Random(f"{torch}/{name}").random() < moved:
                    dice = random.Random(f"{torch}/{seed}/{name}")
                for stage, verdict in zip(STAGES, verdicts(backend, dice), strict=True):
                    if left == 0:
                        return path
                    left -= 1
                    out.write(json.dumps(_line(f"{stage}/{name}", stage, verdict, dice, digests)) + "\n")
    return path


def _line(cell: str, stage: str, verdict: str, dice: random.Random, digests: list[dict[str, str]]) -> dict[str, Any]:
    line: dict[str, Any] = {
        "cell": cell,
        "verdict": verdict,
        "reason": "",
        "findings": [],
        "observation": facts(stage, dice),
    }
    line |= {"texts": {}, "seconds": round(dice.random() * 0.8, 4), "micrograph": "0a1b2c3d4e5f", "url": ""}
    if verdict in ("fail", "xfail", "error", "timeout"):
        kind, check, detail = KINDS[stage]
        line |= {"reason": detail, "findings": [{"kind": kind, "check": check, "detail": detail}]}
        if verdict == "xfail":
            line["url"] = "https://github.com/pytorch/pytorch/issues/190886"
    elif verdict == "fallback":
        line["reason"] = "3 of 3 ops ran in PyTorch"
    elif verdict == "unavailable":
        line["reason"] = "no GPU here: run on a machine with one"
    elif verdict == "blocked":
        line["reason"] = "an earlier stage did not pass"
    texts = dice.choice(digests)
    wanted = {"capture": ("graph",), "postgrad": ("graph before", "graph after"), "codegen": ("code",)}.get(stage, ())
    line["texts"] = {name: texts[name] for name in wanted if verdict in ("pass", "fail", "fallback", "xfail")}
    return line


def _texts(folder: Path, variety: int) -> list[dict[str, str]]:
    from conformance import record_writer

    keep = [("graph", GRAPH), ("graph before", GRAPH), ("graph after", FUSED), ("code", CODE)]
    return [
        {
            name: record_writer.keep_text(folder, text.replace("{n:02d}", f"{n:02d}").replace("{n}", str(n)))
            for name, text in keep
        }
        for n in range(variety)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--cells", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--torch", default="2.14.1")
    parser.add_argument("--moved", type=float, default=0.0)
    parser.add_argument("--variety", type=int, default=40)
    given = vars(parser.parse_args())
    generate(given.pop("path"), given.pop("cells"), **given)

"""Numbers that Inductor counts itself ignore their dtype: bytes do not wrap, truths are not 0 or 1."""

import torch

PROGRAMS = {
    "bytes": lambda x: torch.arange(0, 600, 100).to(torch.int8).long() + x,
    "truths": lambda x: torch.arange(6).bool().long() + x,
}
x, wrong = torch.zeros(6, dtype=torch.int64), []
for name, program in PROGRAMS.items():
    torch.compiler.reset()
    seen, expected = torch.compile(program)(x), program(x)
    if not torch.equal(seen, expected):
        wrong.append(f"{name}: {seen.tolist()}, eager {expected.tolist()}")
print("\n".join(wrong) or "right")
raise SystemExit(bool(wrong))

"""The members of a set and the keys of a dict are guarded by equality: 1 and 1.0, 0.0 and -0.0 are taken for one another."""

import torch

PROGRAMS = {
    "largest member": (lambda x, s: (x * max(s)).dtype, {1, 2}, {1.0, 2.0}),
    "as text": (lambda x, s: str(sorted(s)), {1, 2}, {1.0, 2.0}),
    "key": (lambda x, d: str(sorted(d)), {1: "a"}, {1.0: "a"}),
}
x, wrong = torch.ones(3, dtype=torch.int32), []
for name, (asked, first, second) in PROGRAMS.items():
    torch.compiler.reset()

    def program(x, s, asked=asked):
        return x + 1, asked(x, s)

    compiled = torch.compile(program, backend="eager")
    compiled(x, first)
    seen, expected = compiled(x, second)[1], program(x, second)[1]
    if seen != expected:
        wrong.append(f"{name}: {seen}, eager {expected}")
print("\n".join(wrong) or "right")
raise SystemExit(bool(wrong))

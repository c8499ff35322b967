"""torch.isin of tensors whose numbers of elements are known only at run time: NaN among what is looked for, and nothing to look for."""

import subprocess
import sys

import torch


def asked(*pairs):
    compiled = torch.compile(torch.isin)
    for elements, among in pairs:
        for part in (elements, among):
            torch._dynamo.decorators.mark_unbacked(part, 0)
        made, expected = compiled(elements, among), torch.isin(elements, among)
        if not torch.equal(made, expected):
            raise SystemExit(f"{elements.tolist()} in {among.tolist()[:4]}: {made.tolist()}, eager {expected.tolist()}")


nan = float("nan")
CASES = {
    "NaN": lambda: asked(
        *[(torch.tensor([nan, 1.0, 2.0]), torch.cat([torch.arange(2.0, n), torch.tensor([nan, 1.0])])) for n in (4, 60)]
    ),
    "nothing to look for": lambda: asked(*[(torch.arange(a), torch.arange(b)) for a, b in ((6, 3), (3, 0))]),
}
if len(sys.argv) > 1:
    CASES[sys.argv[1]]()
else:  # each in a process of its own: one of them ends by a signal
    ended = {case: subprocess.run([sys.executable, __file__, case]).returncode for case in CASES}
    wrong = [f"{case} (exit {code})" for case, code in ended.items() if code]
    if wrong:
        raise SystemExit(f"torch {torch.__version__}: {', '.join(wrong)}")

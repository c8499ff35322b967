"""relu or tanh of what torch.cat gave, also through a view, is computed of each tensor before they are joined: with other dtypes, with a view
as another dtype in between, and with `out`, that is another program (sink_cat_after_pointwise, on by default)."""

import torch

torch.manual_seed(0)
R = torch.randn
calls = {
    "seen as bfloat16": (lambda x, y: torch.cat([x, y]).view(torch.bfloat16).relu(), R(3, 4), R(2, 4)),
    "seen as int32": (lambda x, y: torch.cat([x, y]).view(torch.int32).tanh(), R(3, 4), R(2, 4)),
    "int32 and bfloat16": (
        lambda x, y: torch.tanh(torch.cat([x, y])),
        torch.arange(4, dtype=torch.int32),
        R(2).bfloat16(),
    ),
    "bool and float32": (lambda x, y: torch.relu(torch.cat([x, y])), torch.tensor([True, False] * 8), R(2)),
    "out": (lambda x, y: torch.tanh(torch.cat([x, y]), out=torch.empty(5, 4)), R(3, 4), R(2, 4)),
}
wrong = 0
for name, (fn, x, y) in calls.items():
    torch._dynamo.reset()
    expected = fn(x, y)
    try:
        got = torch.compile(fn)(x, y)
        bad = expected.dtype != got.dtype or not torch.equal(expected.nan_to_num(), got.nan_to_num())
    except Exception as error:
        print(f"{name}: {type(error).__name__}")
        wrong += 1
        continue
    wrong += bad
    print(f"{name}: {'WRONG' if bad else 'right'} {expected.dtype} {got.dtype}")
raise SystemExit(bool(wrong))

"""A function with functools.lru_cache: attributes that a caller set are None, its annotations are gone, and repr of it fails."""

import functools

import torch


@functools.lru_cache
def cached(x: int) -> int:
    return x + 1


cached.tag = "mine"
ASKED = {
    "tag": lambda: getattr(cached, "tag", None),
    "hasattr": lambda: hasattr(cached, "__wrapped__"),
    "no __code__": lambda: hasattr(cached, "__code__"),
    "tag of one that wraps it": lambda: getattr(functools.wraps(cached)(lambda x: x), "tag", None),
    "__annotations__": lambda: cached.__annotations__,
    "__name__": lambda: cached.__name__,
    "__doc__": lambda: cached.__doc__,
    "__wrapped__": lambda: cached.__wrapped__ is cached.__wrapped__,
    "repr": lambda: len(repr(cached)),
}
x = torch.ones(2)
wrong = []
for name, ask in ASKED.items():
    torch.compiler.reset()
    try:
        made = torch.compile(lambda x, ask=ask: (x + 1, ask()))(x)[1]
    except Exception as error:
        made = type(error).__name__
    if made != ask():
        wrong.append(f"{name}: {made!r}, not {ask()!r}")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: {'; '.join(wrong)}")

"""torch.func.functionalize inside of a compiled program fails: "x must not already be a functional tensor"."""

import torch


def program(x):
    return torch.func.functionalize(lambda v: v.clone().add_(1))(x)


try:
    torch.compile(program, backend="aot_eager")(torch.ones(2))
except Exception as error:
    raise SystemExit(
        f"torch {torch.__version__}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    ) from None

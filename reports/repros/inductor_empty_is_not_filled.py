"""With deterministic algorithms, new memory of bytes and bools is filled in eager and is not when compiled; a neighbour of pytorch#174386."""

import torch


def program(x):
    return x + 1, torch.empty(40, dtype=torch.uint8), torch.empty(40, dtype=torch.bool)


torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True
x = torch.ones(3)
for eager, compiled in zip(program(x), torch.compile(program)(x), strict=True):
    if not torch.equal(eager, compiled):
        raise SystemExit(
            f"torch {torch.__version__}: {eager.dtype}: eager {eager[:4].tolist()}, compiled {compiled[:4].tolist()}"
        )

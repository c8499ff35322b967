"""After one torch.compile, of any function, torch.distributions takes what it refused before, in the whole process. pytorch#185438."""

import torch


def refused():
    try:
        torch.distributions.Normal(torch.tensor(0.0), torch.tensor(-1.0))
    except ValueError:
        return True
    return False


before = refused()
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
if before and not refused():
    raise SystemExit(
        f"torch {torch.__version__}: Normal(0, -1) is refused before the first torch.compile, and taken after it"
    )

"""An op whose error depends on values (an index, a singular matrix, a probability, an assert) raises out of the compiled call, past the
`except` around it: the op is run at the end of the graph, behind the handler."""

import torch
from torch.nn import functional as F

ATTEMPTS = {
    "embedding": lambda x: F.embedding(torch.tensor([9]), x),
    "index": lambda x: x[torch.tensor([9])],
    "inv": lambda x: torch.linalg.inv(x * 0),
    "multinomial": lambda x: torch.multinomial(-x, 1),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([9, 9])),
}

found = []
for name, attempt in ATTEMPTS.items():

    def call(x, attempt=attempt):
        try:
            return attempt(x)
        except (IndexError, RuntimeError):
            return x * 2

    torch._dynamo.reset()
    x = torch.ones(2, 2)
    try:
        if not torch.equal(torch.compile(call, backend="aot_eager")(x), call(x)):
            found.append(f"{name} goes through")
    except (IndexError, RuntimeError) as error:
        found.append(f"{name} raises {type(error).__name__}")
if found:
    raise SystemExit(f"torch {torch.__version__}: the handler does not run: " + ", ".join(found))

"""With `fallback_random`, bernoulli on a GPU still draws other numbers than eager: it is decomposed into rand. Needs a GPU."""

import torch
import torch._inductor.config

torch._inductor.config.fallback_random = True
p = torch.rand(5, 31, device="cuda")
torch.manual_seed(0)
eager = torch.bernoulli(p)
torch.manual_seed(0)
compiled = torch.compile(torch.bernoulli)(p)
different = int((eager != compiled).sum())
raise SystemExit(f"{different} of {p.numel()} draws differ" if different else 0)

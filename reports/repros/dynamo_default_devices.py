"""The default device is changed between two calls: what the program makes is still made on the first one (2.11)."""

import torch


def program(x):
    return torch.arange(5) * 2, x * 2


compiled = torch.compile(program)
compiled(torch.ones(2))
torch.set_default_device("meta")
told = compiled(torch.ones(2, device="cpu"))[0].device
if told.type != "meta":
    raise SystemExit(f"torch {torch.__version__}: made on {told}, eager makes it on meta")

"""An input that shares its memory with another, written one is returned: another object comes back, without what was attached to it."""

import torch


def program(view, whole):
    whole.add_(1)
    return view


whole = torch.zeros(4)
view = whole.view(2, 2)
view.tag = 5
told = torch.compile(program)(view, whole)
if told is not view:
    raise SystemExit(f"torch {torch.__version__}: another object, with the same values; its tag is {getattr(told, 'tag', 'lost')}")

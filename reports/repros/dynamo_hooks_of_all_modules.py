"""A hook of all modules (`register_module_forward_hook` and its kin) that is registered after the first call is not run, also with
`skip_nnmodule_hook_guards=False`: Dynamo guards the hooks of each module and not the global ones. No error. Next of kin: pytorch#115750."""

import torch
from torch import nn
from torch.nn.modules import module as hooks


class Tripled(nn.Module):
    def forward(self, x):
        return x * 3


def only(hook):
    """Modules of the compiler itself are left alone."""
    return lambda module, *given: hook(*given) if isinstance(module, Tripled) else None


KINDS = {
    "forward": (hooks.register_module_forward_hook, only(lambda args, output: output * 10)),
    "forward pre": (hooks.register_module_forward_pre_hook, only(lambda args: (args[0] + 1,))),
    "full backward": (hooks.register_module_full_backward_hook, only(lambda into, out: (into[0] * 100,))),
    "full backward pre": (hooks.register_module_full_backward_pre_hook, only(lambda out: (out[0] * 100,))),
}
torch._dynamo.config.skip_nnmodule_hook_guards = False
layer = Tripled()


def program(x):
    return layer(x).sin()


def both(call, x):
    y = call(x)
    return y.detach(), torch.autograd.grad(y.sum(), x)[0]


found = []
for kind, (register, hook) in KINDS.items():
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="aot_eager")
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    both(compiled, x)
    handle = register(hook)
    expected, seen = both(program, x), both(compiled, x)
    handle.remove()
    if not all(torch.allclose(one, other) for one, other in zip(expected, seen, strict=True)):
        found.append(kind)
if found:
    raise SystemExit(f"torch {torch.__version__}: hooks that are not run: " + ", ".join(found))

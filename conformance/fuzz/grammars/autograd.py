"""Custom autograd functions, functorch transforms, checkpointing and hooks; values and gradients are compared."""

from __future__ import annotations

from conformance.fuzz.grammar import Choices, Grammar, names

TEXT = """
from torch.utils.checkpoint import checkpoint

$function

def inner(x, y):
    $call
    return $result

def f(x, y):
    $around

def play(compile):
    x, y = torch.arange(1.0, 4.0, requires_grad=True), torch.tensor([2.0, -1.0, 0.5], requires_grad=True)
    out = compile(f)(x, y)
    first = out[0] if isinstance(out, tuple) else out
    if isinstance(first, torch.Tensor) and first.requires_grad:
        $backward
    return out, x.grad, y.grad
"""
FUNCTIONS = {
    "none": "",
    "scaled": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * 10, g * x * 100
""",
    "setup_context": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * 10, g * x * 100
""",
    "generated vmap": """
class Fn(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x, y):
        return x * y
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * 10, g * x * 100
""",
    "with jvp": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * 10, g * x * 100
    @staticmethod
    def jvp(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y * 1000 + b * x
""",
    "two outputs": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y
    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y * 10 + h, g * x * 100 + h
""",
    "undefined gradients": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * y, x + y
    @staticmethod
    def backward(ctx, g, h):
        if h is None:
            return g * 7, None
        return h * 3, h
""",
    "not differentiable": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        index = (x * y).long()
        ctx.mark_non_differentiable(index)
        return x * y, index
    @staticmethod
    def backward(ctx, g, h):
        return g * 10, g * 100
""",
    "writes its input": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        x.add_(y)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 7, g * 3
""",
    "returns its input": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 7, None
""",
    "returns a view": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x.view(3)
    @staticmethod
    def backward(ctx, g):
        return g * 7, g * 2
""",
    "keeps attributes": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.k = 5
        ctx.shape = x.shape
        ctx.extra = x + 1
        return x * y
    @staticmethod
    def backward(ctx, g):
        return g * ctx.k * ctx.extra, g * ctx.shape[0]
""",
    "needs_input_grad": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * y
    @staticmethod
    def backward(ctx, g):
        return g * 2 if ctx.needs_input_grad[0] else None, g * 5 if ctx.needs_input_grad[1] else None
""",
    "once differentiable": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * 10, g * x * 100
""",
    "saves the output": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        out = (x * y).exp()
        ctx.save_for_backward(out)
        return out
    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g * out, g * out * 2
""",
    "no_grad inside": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        with torch.enable_grad():
            z = x.detach().requires_grad_() * 3
        ctx.save_for_backward(z)
        return (x * y).clone()
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], g
""",
    "writes saved": """
class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        t = x * 2
        ctx.save_for_backward(t.clone())
        t.mul_(y)
        return t
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], g * 4
""",
}
CALLS = {
    "plain ops": "z = (x * y).sin() + x",
    "apply": "z = Fn.apply(x, y)",
    "same twice": "z = Fn.apply(x, x)",
    "of computed": "z = Fn.apply(x * 2, y + 1)",
    "twice": "z = Fn.apply(Fn.apply(x, y), y)",
    "of copy": "w = x * 1\nz = Fn.apply(w, y)\nz = z + w",
    "in a list": "z = [Fn.apply(x, y)][0] * 2",
    "detached": "z = Fn.apply(x.detach(), y)",
    "of a view": "z = Fn.apply(x.view(1, 3)[0], y)",
    "no_grad y": "with torch.no_grad():\n    w = y * 2\nz = Fn.apply(x, w)",
    "in-place after": "z = Fn.apply(x, y) * 1\nz.mul_(2)",
}
AROUNDS = {
    "nothing": "return inner(x, y)",
    "summed": "return inner(x, y).sum()",
    "func.grad": "return torch.func.grad(lambda t: inner(t, y).sum())(x)",
    "func.grad of both": "return torch.func.grad(lambda a, b: inner(a, b).sum(), argnums=(0, 1))(x, y)",
    "func.vjp": "out, pull = torch.func.vjp(inner, x, y)\nreturn pull(torch.ones_like(out))",
    "func.jvp": "return torch.func.jvp(inner, (x, y), (torch.ones_like(x), torch.ones_like(y)))",
    "vmap": "return torch.vmap(inner, (0, None))(torch.stack([x, x * 2]), y)",
    "vmap of both": "return torch.vmap(inner)(torch.stack([x, x * 2]), torch.stack([y, y]))",
    "vmap out": "return torch.vmap(inner, (0, None), out_dims=1)(torch.stack([x, x * 2]), y)",
    "vmap of grad": "return torch.vmap(torch.func.grad(lambda t: inner(t, y).sum()))(torch.stack([x, x * 2]))",
    "jacrev": "return torch.func.jacrev(inner)(x, y)",
    "jacfwd": "return torch.func.jacfwd(inner)(x, y)",
    "hessian": "return torch.func.hessian(lambda t: inner(t, y).sum())(x)",
    "vmap of jacrev": "return torch.vmap(torch.func.jacrev(lambda t: inner(t, y)))(torch.stack([x, x]))",
    "vmap of jacfwd": "return torch.vmap(torch.func.jacfwd(lambda t: inner(t, y)))(torch.stack([x, x]))",
    "has_aux": "return torch.func.grad(lambda t: (inner(t, y).sum(), t * 2), has_aux=True)(x)",
    "linearize": "out, fn = torch.func.linearize(lambda t: inner(t, y), x)\nreturn out, fn(torch.ones_like(x))",
    "functional_call": "m = torch.nn.Linear(3, 3)\np = {'weight': torch.eye(3) * x, 'bias': y}\n"
    "return torch.func.functional_call(m, p, (inner(x, y),))",
    "checkpoint": "return checkpoint(inner, x, y, use_reentrant=False)",
    "checkpoint twice": "z = checkpoint(inner, x, y, use_reentrant=False)\n"
    "return checkpoint(lambda t: t.sin() * y, z, use_reentrant=False)",
    "no_grad": "with torch.no_grad():\n    return inner(x, y)",
    "detach": "return inner(x, y).detach() * x",
    "autograd.grad": "return torch.autograd.grad(inner(x, y).sum(), x)[0]",
    "autograd.grad of both": "return torch.autograd.grad(inner(x, y).sum(), (x, y), create_graph=True)",
    "backward inside": "inner(x, y).sum().backward()\nreturn x.grad.clone()",
    "hook": "z = inner(x, y)\nz.register_hook(lambda g: g * 2)\nreturn z",
    "input hook": "x.register_hook(lambda g: g * 3)\nreturn inner(x, y)",
    "graph break": "z = inner(x, y)\ntorch._dynamo.graph_break()\nreturn inner(z, y)",
    "save on cpu": "with torch.autograd.graph.save_on_cpu():\n    return inner(x, y)",
    "requires_grad_ inside": "z = x.detach().requires_grad_()\ng = torch.autograd.grad(inner(z, y).sum(), z)[0]\n"
    "return g * x",
    "view and write": "z = inner(x, y) * 1\nz[0] = 5\nz.view(-1)[1:].mul_(x[1:])\nreturn z",
    "two results": "z = inner(x, y)\nreturn z, z.view(-1), z.detach()",
    "input returned": "return inner(x, y), x, y * 1",
    "inference": "with torch.inference_mode():\n    return inner(x.detach(), y.detach()) + 0",
    "autocast": "with torch.autocast('cpu', dtype=torch.bfloat16):\n    return inner(x, y) @ torch.ones(3)",
}
BACKWARDS = {
    "sum": "first.sum().backward()",
    "twice": "first.sum().backward(retain_graph=True)\nfirst.sum().backward()",
    "weighted": "first.backward(torch.arange(first.numel()).view(first.shape).float())",
    "expanded": "first.backward(torch.ones(()).expand(first.shape))",
    "none": "pass",
    "second": "(out[-1] if isinstance(out, tuple) and out[-1].requires_grad else first).sum().backward()",
}
PAIRS = {"two outputs", "undefined gradients", "not differentiable"}


def allowed(choices: Choices) -> bool:
    applied = choices["call"] != "plain ops"
    if applied == (choices["function"] == "none"):
        return False
    pair = choices["function"] in PAIRS
    if pair and (choices["call"] not in ("apply", "of computed", "same twice") or choices["result"] == "z"):
        return False
    if not pair and choices["result"] != "z":
        return False
    return not (choices["function"] == "writes its input" and choices["call"] in ("apply", "same twice", "of a view"))


GRAMMAR = Grammar(
    name="autograd",
    text=TEXT,
    slots={
        "function": FUNCTIONS,
        "call": CALLS,
        "result": names("z", "z[0]", "z[1]", "z[0] + z[1]"),
        "around": AROUNDS,
        "backward": BACKWARDS,
    },
    rungs=("capture", "decompositions"),
    cause=("function", "call", "around"),
    allowed=allowed,
)

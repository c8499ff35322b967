"""Several calls of one compiled function: other shapes, layouts, dtypes, modes and aliasing from call to call; modules
whose state, hooks and mode change; custom ops that write their arguments."""

from __future__ import annotations

from conformance.fuzz.grammar import Grammar
from conformance.fuzz.grammars import custom_ops

TEXT = """
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = torch.nn.Linear(3, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("state", torch.zeros(3))
        self.scale = 2.0
        self.items = [1.0]

    def forward(self, x, y):
        $forward

def play(compile):
    torch.manual_seed(0)
    m = Layer()
    g = compile(m)
    x, y = torch.arange(6.0).view(2, 3), torch.arange(6.0, 12.0).view(2, 3)
    results = [g(x, y)]
    $change
    results.append(g(x, y))
    $caller
    results.append(g(x, y))
    return results, x, y, m.state, m.weight, m.scale, m.items, m.norm.running_mean
"""
FORWARDS = {
    "linear": "return self.sub(x) + y",
    "weight": "return x * self.weight + y",
    "state": "return x + self.state",
    "state written": "self.state.add_(x.detach().sum(0))\nreturn x * self.state",
    "state rebound": "self.state = self.state + x.detach()[0]\nreturn x * self.state",
    "norm": "return self.norm(x) + y",
    "scale": "return x * self.scale",
    "scale grows": "self.scale += 1\nreturn x * self.scale",
    "items": "return x * len(self.items) + sum(self.items)",
    "items grow": "self.items.append(float(len(self.items)))\nreturn x + self.items[-1]",
    "x written": "x.mul_(2)\nreturn x + y",
    "y written by x": "y.copy_(x)\nreturn x + y",
    "both written": "x.add_(1)\ny.mul_(2)\nreturn x + y",
    "view returned": "return x[0], y.t()",
    "input returned": "return x, x + y",
    "alias after write": "x.mul_(2)\nreturn x.chunk(2, 0)",
    "view of view": "v = x.view(-1)[1:4]\nv.add_(1)\nreturn v, y",
    "times one": "return x * 1, y + 0",
    "transposed": "return (x.t() @ y).t()",
    "size": "return x * x.shape[0] + x.shape[1]",
    "size branch": "return x + 1 if x.shape[0] > 2 else x - 1",
    "value branch": "return x + 1 if x.sum() > 20 else x - 1",
    "contiguity branch": "return x + 1 if x.is_contiguous() else x - 1",
    "stride": "return x * x.stride(0)",
    "dtype branch": "return x + 1 if x.dtype == torch.float32 else x - 1",
    "grad branch": "return x + 1 if x.requires_grad else x - 1",
    "identity branch": "return x + 1 if x is y else x - y",
    "overlap": "x[:, 1:] = y[:, :-1]\nreturn x.sum(0)",
    "training branch": "return F.dropout(x, 1.0, self.training) + self.weight",
    "custom op": "bump(x)\nreturn x + y",
    "custom op of view": "bump(x[0])\nreturn x * 2",
    "custom op of both": "bump_both(x, y)\nreturn x - y",
    "custom op of two views": "bump_both(x[0], x[1])\nreturn x + 1",
    "custom op of list": "bump_all([x, y])\nreturn x * y",
    "custom op strided": "return strided(x) + y",
    "custom op unsqueezed": "return strided(x).unsqueeze(0) + y",
    "custom op result written": "z = strided(x)\nz.add_(1)\nreturn z, x",
    "custom op returns clone": "z = double(x)\nz.mul_(2)\nreturn z + x",
    "custom op after clone": "kept = x.clone()\nbump(x)\nreturn kept, x + 0",
    "custom op between writes": "x.add_(1)\nbump(x)\nx.mul_(2)\nreturn x + y",
    "custom op of state": "bump(self.state)\nreturn x + self.state",
    "custom op optional": "maybe(x, None)\nmaybe(x, y)\nreturn x, y",
    "data of input": "x.data = y.data * 2\nreturn x + 1",
    "set data of state": "self.state.data = x[0].detach() * 3\nreturn x + self.state",
    "resize": "z = x.clone()\nz.resize_(3, 3)\nreturn z[:2] * 1",
    "module called twice": "return self.sub(self.sub(x)) + self.weight",
    "getattr": "return x * getattr(self, 'extra', 1.0)",
    "has extra": "return x + (1 if hasattr(self, 'extra') else 2)",
    "forward of child": "return self.sub.forward(x)",
    "named": "return x + sum(p.sum() for n, p in self.named_parameters() if 'norm' not in n)",
    "children": "return x + len(list(self.children()))",
    "buffers": "return x + sum(b.sum() for b in self.buffers()).float()",
}
CHANGES = {
    "nothing": "pass",
    "more rows": "x, y = torch.arange(12.0).view(4, 3), torch.arange(12.0, 24.0).view(4, 3)",
    "one row": "x, y = torch.arange(3.0).view(1, 3), torch.ones(1, 3)",
    "no rows": "x, y = torch.ones(0, 3), torch.ones(0, 3)",
    "double": "x, y = x.double(), y.double()",
    "half x": "x = x.half()",
    "integers": "x = x.long()",
    "transposed": "x = torch.arange(6.0).view(3, 2).t()",
    "expanded": "x = torch.arange(3.0).expand(2, 3).contiguous()[:1].expand(2, 3)",
    "offset": "x = torch.arange(9.0)[3:].view(2, 3)",
    "the same": "y = x",
    "one storage": "base = torch.arange(6.0)\nx, y = base.view(2, 3), base.view(2, 3)",
    "overlapping": "base = torch.arange(9.0)\nx, y = base[:6].view(2, 3), base[3:].view(2, 3)",
    "side by side": "base = torch.arange(12.0)\nx, y = base[:6].view(2, 3), base[6:].view(2, 3)",
    "gradient": "x = x.clone().requires_grad_() * 1",
    "no gradient": "m.requires_grad_(False)",
    "eval": "m.eval()",
    "weight data": "m.weight.data = torch.full((3,), 5.0)",
    "weight replaced": "m.weight = torch.nn.Parameter(torch.full((3,), 7.0))",
    "weight copied": "with torch.no_grad():\n    m.weight.copy_(torch.tensor([4.0, 5, 6]))",
    "state replaced": "m.state = torch.full((3,), 9.0)",
    "state shares weight": "m.state = m.weight.detach()",
    "state is x's row": "m.state = x[0]",
    "scale": "m.scale = 5.0",
    "scale to int": "m.scale = 2",
    "items": "m.items.append(3.0)",
    "items replaced": "m.items = [7.0, 8.0]",
    "sub replaced": "torch.manual_seed(1)\nm.sub = torch.nn.Linear(3, 3)",
    "sub by other class": "m.sub = torch.nn.Tanh()",
    "sub shadowed": "object.__setattr__(m, 'sub', torch.nn.Tanh())",
    "weight shadowed": "object.__setattr__(m, 'weight', torch.full((3,), 11.0))",
    "state shadowed": "object.__setattr__(m, 'state', torch.full((3,), 12.0))",
    "scale in class": "Layer.scale = 9.0\ndel m.scale",
    "extra": "m.extra = 6.0",
    "extra in class": "Layer.extra = 6.0",
    "extra parameter": "m.extra = torch.nn.Parameter(torch.ones(3) * 3)",
    "extra buffer": "m.register_buffer('extra', torch.ones(3) * 4)",
    "extra module": "m.more = torch.nn.ReLU()",
    "forward hook": "m.register_forward_hook(lambda m, i, o: (o, 'hooked'))",
    "forward pre-hook": "m.register_forward_pre_hook(lambda m, i: (i[0] + 100, i[1]))",
    "hook of sub": "m.sub.register_forward_hook(lambda m, i, o: o * 10)",
    "pre-hook of sub": "m.sub.register_forward_pre_hook(lambda m, i: (i[0] * 10,))",
    "forward replaced": "m.forward = lambda x, y: x * 1000",
    "forward of class": "Layer.forward = lambda self, x, y: x * 1000",
    "forward of sub's class": "class Other(torch.nn.Linear):\n    def forward(self, x):\n        return x * 1000\nm.sub.__class__ = Other",
    "forward of sub": "m.sub.forward = lambda x: x * 1000",
    "training of norm": "m.norm.eval()",
    "momentum": "m.norm.momentum = 0.9",
    "eps": "m.norm.eps = 10.0",
    "to double": "m.double()\nx, y = x.double(), y.double()",
    "no_grad": "torch.set_grad_enabled(False)",
    "load": "m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()})",
    "weight frozen": "m.weight.requires_grad_(False)",
    "parametrized": "torch.nn.utils.parametrize.register_parametrization(m, 'weight', torch.nn.Tanh())",
    "weight norm": "torch.nn.utils.parametrizations.weight_norm(m.sub)",
    "output written": "with torch.no_grad():\n    for t in results[0] if isinstance(results[0], tuple) else [results[0]]:\n"
    "        t.add_(100)",
    "deepcopied": "import copy\nm2 = copy.deepcopy(m)\nm2.scale = 77.0\ng = compile(m2)",
    "dropout always": "m.train()\nm.norm.track_running_stats = False",
}
CALLERS = {
    "nothing": "pass",
    "input written": "x = x * 1\nx.add_(1)",
    "outputs written": "with torch.no_grad():\n    for t in results[-1] if isinstance(results[-1], tuple) else [results[-1]]:\n"
    "        t.detach().mul_(3) if isinstance(t, torch.Tensor) else t",
    "gradient taken": "t = results[-1][0] if isinstance(results[-1], tuple) else results[-1]\n"
    "if t.requires_grad:\n    t.sum().backward()\n    results.append(m.weight.grad)",
}
OVERLAPS = {"the same", "one storage", "overlapping", "expanded"}
WRITING = {"both written", "overlap", "y written by x", "custom op of both", "custom op of list", "custom op optional"}

GRAMMAR = Grammar(
    name="scenarios",
    text=TEXT,
    slots={
        "forward": FORWARDS,
        "change": CHANGES,
        "caller": CALLERS,
    },
    rungs=("capture", "decompositions", "inductor"),
    cause=("change|forward",),
    allowed=lambda choices: choices["change"] not in OVERLAPS or choices["forward"] not in WRITING,
    helpers=custom_ops.OPS,
)

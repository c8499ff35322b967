"""Random ops: with Inductor told to draw as eager does, numbers, dtypes and the state of the generator must be eager's."""

from __future__ import annotations

from conformance.fuzz.grammar import Grammar

TEXT = """
from torch.utils.checkpoint import checkpoint

def inner(x):
    $draw
    $then
    return r

def f(x):
    $around

def play(compile):
    x = torch.linspace(0.1, 0.9, 8, requires_grad=True)
    torch.manual_seed(3)
    g = compile(f)
    results = []
    for _ in range(2):
        out = g(x)
        if isinstance(out, torch.Tensor) and out.requires_grad:
            out.sum().backward()
        results.append(out)
    return results, x.grad, torch.rand(2)
"""
DRAWS = {
    "dropout": "r = F.dropout(x, 0.5)",
    "rand": "r = torch.rand(8) * x",
    "rand_like": "r = torch.rand_like(x) + x",
    "randn": "r = torch.randn(8, dtype=torch.float64) + x",
    "randint": "r = torch.randint(0, 9, (8,)) * x",
    "randperm": "r = x[torch.randperm(8)]",
    "bernoulli": "r = torch.bernoulli(x) * x",
    "bernoulli p": "r = torch.bernoulli(x, 0.3) + x",
    "normal": "r = torch.normal(x, 1.0)",
    "normal of tensors": "r = torch.normal(x.detach(), x.detach()) * x",
    "normal size": "r = torch.normal(2.0, 3.0, (8,), dtype=torch.float64)",
    "normal_": "r = torch.empty(8).normal_() * x",
    "uniform_": "r = torch.empty(8, dtype=torch.bfloat16).uniform_(1, 2) + x",
    "exponential_": "r = torch.empty(8).exponential_() * x",
    "random_": "r = torch.empty(8, dtype=torch.int64).random_(0, 5) * x",
    "multinomial": "r = torch.multinomial(x, 4) * 1.0",
    "poisson": "r = torch.poisson(x.detach() * 4) * x",
    "rrelu": "r = F.rrelu(x - 0.5, training=True)",
    "alpha_dropout": "r = F.alpha_dropout(x, 0.5, training=True)",
    "feature dropout": "r = F.dropout1d(x.view(1, 4, 2), 0.5).flatten()",
    "gumbel": "r = F.gumbel_softmax(x, hard=True)",
    "distribution": "r = torch.distributions.Normal(x, 1.0).rsample()",
    "half distribution": "r = torch.distributions.Normal(x.detach().half(), torch.ones(8)).sample() * x",
    "categorical": "r = torch.distributions.Categorical(x.detach()).sample() * x",
    "attention": "r = F.scaled_dot_product_attention(*[x.view(1, 1, 4, 2)] * 3, dropout_p=0.5).flatten()",
    "module": "r = torch.nn.Dropout(0.5)(x)",
    "seeded": "torch.manual_seed(5)\nr = torch.rand(8) * x",
    "generator": "r = torch.rand(8, generator=torch.Generator().manual_seed(1)) * x",
    "fork": "with torch.random.fork_rng():\n    torch.manual_seed(9)\n    r = torch.rand(8) * x",
    "state": "s = torch.get_rng_state()\nr = torch.rand(8) * x\ntorch.set_rng_state(s)\nr = r + torch.rand(8)",
    "fractional pool": "r = F.fractional_max_pool2d(x.view(1, 1, 2, 4), 1, output_size=(1, 2)).flatten()",
    "python random": "import random\nrandom.seed(1)\nr = x * random.random() + random.randint(1, 5)",
    "numpy free shuffle": "import random\nrandom.seed(2)\nitems = [1, 2, 3]\nrandom.shuffle(items)\nr = x + items[0]",
    "randn complex": "r = torch.randn(8, dtype=torch.complex64).real + x",
    "rand strided": "r = torch.rand_like(x.view(2, 4).t()).flatten() + x",
}
THENS = {
    "nothing": "",
    "relu": "r = F.relu(r)",
    "in-place": "r = r * 1\nr.mul_(2)",
    "twice": "r = F.dropout(r.float(), 0.5) + F.dropout(r.float(), 0.5)",
    "view": "r = r.view(-1)[::2]",
    "transposed": "r = F.dropout(r.float().view(2, -1).t().contiguous(), 0.3)",
}
AROUNDS = {
    "nothing": "return inner(x)",
    "checkpoint": "return checkpoint(inner, x, use_reentrant=False)",
    "break": "y = inner(x)\ntorch._dynamo.graph_break()\nreturn y + torch.rand(1)",
    "no_grad": "with torch.no_grad():\n    return inner(x)",
    "vmap different": "return torch.vmap(inner, randomness='different')(torch.stack([x, x]))",
    "vmap same": "return torch.vmap(inner, randomness='same')(torch.stack([x, x]))",
    "func.grad": "return torch.func.grad(lambda t: inner(t).sum())(x)",
    "loop": "return sum(inner(x).sum() for _ in range(2))",
}
GRAMMAR = Grammar(
    name="randoms",
    text=TEXT,
    slots={"draw": DRAWS, "then": THENS, "around": AROUNDS},
    rungs=("capture", "functionalization", "inductor"),  # decompositions of random ops may draw in another way
    cause=("draw", "around"),
    allowed=lambda choices: not (choices["draw"] == "attention" and choices["around"].startswith("vmap")),
)

"""Modules whose state changes inside the program. The form is that of `python_containers`."""

from __future__ import annotations

from conformance.fuzz.grammar import parts

PARTS = parts(
    r"""
## module state
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))
        self.register_buffer('count', torch.zeros(()))
        self.n = 0
    def forward(self, t):
        self.count += 1
        self.n += 1
        return t * self.w + self.count + self.n
layer = Layer()
---
y = layer(x)
$middle
return layer(y).detach()
---
layer.count, layer.n, list(layer.state_dict())
## module buffer rebound
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('state', torch.zeros(3))
    def forward(self, t):
        self.state = self.state + t
        return self.state * 2
layer = Layer()
---
y = layer(x)
$middle
return layer(y)
---
layer.state
## module attribute dict
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}
    def forward(self, t):
        if 'k' not in self.cache:
            self.cache['k'] = t + 1
        return self.cache['k'] * t
layer = Layer()
---
y = layer(x)
$middle
return layer(y)
---
layer.cache
## module forward hook
layer = torch.nn.Identity()
seen = []
layer.register_forward_hook(lambda m, i, o: seen.append(1) or o + 10)
---
y = layer(x)
$middle
return layer(y)
---
seen
## module list and dict
layers = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Tanh()])
table = torch.nn.ModuleDict({'a': torch.nn.Sigmoid()})
---
for k, m in enumerate(layers):
    x = m(x) + k
$middle
return table['a'](x), len(layers), list(table), 'b' in table
## parameter list
ps = torch.nn.ParameterList([torch.ones(3), torch.zeros(3)])
---
y = sum(p * x for p in ps)
$middle
return y.detach(), len(ps), [p.requires_grad for p in ps]
## tensor subclass free function
def tag(t):
    t.fuzz_tag = getattr(t, 'fuzz_tag', 0) + 1
    return t
kept = torch.ones(3)
---
tag(kept)
$middle
tag(kept)
return x + kept.fuzz_tag
---
kept.fuzz_tag
"""
)

"""Generators around tensors. The form is that of `python_containers`."""

from __future__ import annotations

from conformance.fuzz.grammar import parts

PARTS = parts(
    r"""
## generator
def numbers():
    yield 1
    yield 2
---
g = numbers()
first = next(g)
$middle
return x + first, list(g)
## generator return value
def numbers():
    yield 1
    return 7
def outer():
    value = yield from numbers()
    yield value * 10
---
$middle
return x, list(outer())
## generator send
def echo():
    got = 0
    while True:
        got = yield got * 2
---
g = echo()
next(g)
a = g.send(3)
$middle
return x + a, g.send(4)
## generator throw
def careful():
    try:
        yield 1
    except ValueError:
        yield 'caught'
---
g = careful()
next(g)
$middle
return x, g.throw(ValueError('no'))
## generator close
---
seen = []
def careful():
    try:
        yield 1
        yield 2
    finally:
        seen.append('closed')
g = careful()
next(g)
g.close()
$middle
return x, seen, list(g)
---
None
## generator finally
---
def careful():
    try:
        yield x + 1
    finally:
        log.append('done')
out = list(careful())
$middle
return out
---
None
## generator expression is lazy
---
k = 1
g = (k * v for v in [1, 2])
k = 10
$middle
return x, list(g)
---
None
## generator over writes
---
def parts():
    for i in range(3):
        x[i] = i
        yield x.clone()
out = []
for part in parts():
    out.append(part)
    $middle
return out
---
None
## generator returned
---
g = (x * k for k in range(2))
$middle
return list(g)
---
None
## generator with no_grad
---
@torch.no_grad()
def parts(w):
    for k in range(2):
        yield w * k
w = torch.ones(2, requires_grad=True)
out = [t.requires_grad for t in parts(w)]
$middle
return x, out
---
None
## generator stop value
def numbers():
    yield 1
    return 'end'
---
g = numbers()
next(g)
try:
    next(g)
except StopIteration as stop:
    $middle
    return x, stop.value
## generator kept
def numbers():
    n = 0
    while True:
        n += 1
        yield n
kept = numbers()
---
a = next(kept)
$middle
return x + a, next(kept)
---
next(kept)
## generator left by return
def numbers(x):
    yield x * 1
    yield x * 2
    return 'done'
def ended(g):
    kept = [type(g).__name__]
    try:
        while True:
            next(g)
    except StopIteration as stop:
        kept.append(stop.value)
    return kept
made = []
---
g = numbers(x)
next(g)
$middle
made.append(g)
return x + 1
---
[ended(g) for g in made]
## generator recursion
def walk(tree):
    for node in tree:
        if isinstance(node, list):
            yield from walk(node)
        else:
            yield node
---
$middle
return x, list(walk([1, [2, [3]], 4]))
"""
)

"""Iterators, itertools, functools and tensors as Python objects. The form is that of `python_containers`."""

from __future__ import annotations

from conformance.fuzz.grammar import parts

PARTS = parts(
    r"""
## accumulate
out = list(itertools.accumulate([1, 2, 3], operator.mul, initial=2))
$middle
return x, out
## groupby
out = [(k, len(list(g))) for k, g in itertools.groupby('aabbb')]
$middle
return x, out
## islice
it = iter(range(10))
a = list(itertools.islice(it, 2, 6, 2))
$middle
return x, a, next(it)
## tee
a, b = itertools.tee(iter([1, 2, 3]))
next(a)
$middle
return x, list(a), list(b)
## chain and product
out = list(itertools.chain.from_iterable([[1], [2]])), list(itertools.product('ab', repeat=2))
$middle
return x, out
## zip_longest
out = list(itertools.zip_longest([1, 2], [3], fillvalue=0))
$middle
return x, out, list(itertools.pairwise('abc'))
## cycle
c = itertools.cycle([1, 2])
out = [next(c) for _ in range(3)]
$middle
return x, out, next(c)
## count kept
numbers = itertools.count(5, 2)
---
n = next(numbers)
$middle
return x + n, n
---
next(numbers)
## takewhile
it = iter([1, 2, 9, 1])
a = list(itertools.takewhile(lambda v: v < 5, it))
$middle
return x, a, list(it)
## starmap
$middle
return x, list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.compress('abc', [1, 0, 1]))
## permutations
$middle
return x, list(itertools.permutations([1, 2], 2)), list(itertools.combinations('abc', 2))
## iter of iterator
it = iter([1, 2, 3])
next(it)
same = iter(it) is it
$middle
return x, same, list(it)
## iter with sentinel
items = [1, 2, 0, 3]
out = list(iter(lambda: items.pop(0), 0))
$middle
return x, out, items
## iterator kept
kept = iter([1, 2, 3, 4])
---
n = next(kept)
$middle
return x + n, n
---
list(kept)
## reduce
$middle
return functools.reduce(operator.add, [x, x, x]), functools.reduce(lambda a, b: a - b, [1, 2], 10)
## partial
def scale(t, k, *, b=0):
    return t * k + b
---
p = functools.partial(scale, k=3)
q = functools.partial(p, b=1)
$middle
return p(x), q(x, b=2), q.keywords
## lru_cache
@functools.lru_cache(maxsize=None)
def slow(n):
    return n * 2
---
n = slow(3) + slow(3)
$middle
return x + n
## ordered dict of the caller moved
cache = collections.OrderedDict(a=1, b=2, c=3)
---
cache.move_to_end('a')
$middle
return x + cache['a']
---
list(cache)
## ordered dict of the caller popped
cache = collections.OrderedDict(a=1, b=2, c=3)
---
if len(cache) > 1:
    cache.popitem(last=False)
$middle
return x + len(cache)
---
list(cache)
## partial of the caller
base = functools.partial(torch.add, alpha=2)
---
more = functools.partial(base, x)
$middle
return more(x), more.args == base.args, sorted(more.keywords)
## singledispatch
@functools.singledispatch
def kind(v):
    return 'any'
@kind.register
def _(v: int):
    return 'int'
---
$middle
return x, kind(3), kind('a')
## cmp_to_key
out = sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))
$middle
return x, out
## operator getters
g = operator.itemgetter(0, 2)
$middle
return x, g('abc'), operator.attrgetter('shape')(x), operator.methodcaller('sum')(x)
## simple namespace
box = types.SimpleNamespace(n=0)
---
box.n += 1
$middle
box.last = x.shape[0]
return x + box.n
---
vars(box)
## global written
total = 0
---
global total
total += 1
$middle
total *= 2
return x + total
---
total
## tensor kept
kept = {}
---
kept['last'] = x * 2
$middle
kept['last'].add_(1)
return x
---
kept['last']
## tensor in default
def add(t, seen=[]):
    seen.append(1)
    return t + len(seen)
---
a = add(x)
$middle
return a, add(x)
---
add.__defaults__
## tensor attribute
y = x + 1
y.tag = 'mine'
$middle
return y, y.tag, hasattr(x, 'tag')
## tensor identity
y = x
z = x.view(-1)
$middle
return y is x, z is x, x.detach() is x, [t is x for t in (x, y, z)]
## tensor shape as tuple
s = x.shape + (2,)
$middle
return x, s, type(s).__name__, s.numel() if hasattr(s, 'numel') else len(s), x.shape == (3,)
## tensor truth
y = x.sum()
$middle
return (x + 1) if y > 3 else (x - 1), bool(y), float(y), int(y)
## tensor iteration
out = [t * k for k, t in enumerate(x)]
$middle
a, b, c = x
return out, a + c, len(x)
## tensor to list
values = x.tolist()
$middle
return x, values, x.max().item() + 1
## tensor type checks
$middle
return x, isinstance(x, torch.Tensor), type(x) is torch.Tensor, torch.is_tensor(3), callable(x.sum)
"""
)

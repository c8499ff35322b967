"""Lists, dicts, sets, tuples, strings and numbers around tensors. A part is a body of `program(x, log)`; before it may stand
definitions, after it an expression for the state after the calls. `$middle` is where something may happen in between."""

from __future__ import annotations

from conformance.fuzz.grammar import parts

PARTS = parts(
    r"""
## list append
kept = []
---
kept.append(x.shape[0])
$middle
kept.append(x)
return x + len(kept)
---
len(kept)
## list slice assign
kept = [1, 2, 3]
---
kept[1:2] = [7, 8]
$middle
return x * sum(kept)
---
kept
## list extend by itself
kept = [1]
---
kept.extend(kept)
$middle
return x + len(kept)
---
kept
## list sort by key
items = [3, -1, 2]
items.sort(key=abs, reverse=True)
$middle
return x + items[0], items
## list sort of tensors
items = [x + 2, x]
items.sort(key=lambda t: t.shape[0])
$middle
return items
## list remove
items = [1, 2, 1]
items.remove(1)
$middle
return x, items
## list index error
items = [1]
try:
    return x + items[3]
except IndexError as e:
    $middle
    return x, str(e)
## list equality
a, b = [1, [2]], [1, [2]]
$middle
return x, a == b, a is b, a < [1, [3]]
## list multiplied
rows = [[0]] * 3
rows[0].append(1)
$middle
return x, rows
## list of tensors in
items = [x, x + 1]
$middle
return x, any(t is x for t in items), items.index(x)
## list copy
kept = [[1]]
---
a, b = kept[:], copy.deepcopy(kept)
a[0].append(2)
$middle
return x, a, b
---
kept
## list del
kept = [1, 2, 3, 4]
---
del kept[0]
$middle
return x + kept[0]
---
kept
## list subclass
class Stack(list):
    def push(self, v):
        self.append(v)
        return self
kept = Stack()
---
kept.push(2).push(3)
$middle
return x * kept[-1], type(kept).__name__
---
list(kept)
## list subclass made
class Stack(list):
    def top(self):
        return self[-1]
---
s = Stack([1, 2])
s.append(5)
$middle
return x + s.top(), len(s), s == [1, 2, 5]
## tuple subclass
class Pair(tuple):
    def total(self):
        return self[0] + self[1]
---
p = Pair((1, 2))
$middle
return x + p.total(), p, p == (1, 2)
## star unpack
first, *rest = [1, 2, 3]
*head, last = 'abc'
$middle
return x + first, rest, head, last
## nested unpack
(a, (b, *c)), d = (1, (2, 3, 4)), 5
$middle
return x + a + b + d, c
## star of generator
items = [*(k * k for k in range(3)), *{'a': 1}]
$middle
return x, items
## dict grows
kept = {}
---
kept[len(kept)] = x.shape
$middle
return x + len(kept)
---
len(kept)
## dict order
kept = {'a': 1, 'b': 2}
---
kept['a'] = kept.pop('a') + 1
$middle
return x, list(kept)
---
list(kept.items())
## dict views
d = {'a': 1, 'b': 2}
k = d.keys()
d['c'] = 3
$middle
return x, len(k), sorted(k & {'a', 'c'})
## dict items returned
d = {'a': x, 'b': x + 1}
$middle
return list(d.items())
## dict merge
a, b = {'u': 1, 'v': 2}, {'v': 3}
c = a | b
a |= {'w': 4}
$middle
return x, c, a
## dict subclass merge
class Config(dict):
    pass
---
c = Config(a=1) | {'b': 2}
$middle
return x, type(c).__name__, sorted(c)
## dict subclass get
class Config(dict):
    def __getitem__(self, key):
        return dict.__getitem__(self, key) + 10
---
c = Config(a=1)
$middle
return x + c['a'], c.get('a'), list(c.values())
## dict subclass set
class Config(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)
---
c = Config()
c['a'] = 3
c.update(b=4)
$middle
return x + c['a'], dict(c)
## dict missing
class Config(dict):
    def __missing__(self, key):
        return len(key)
---
c = Config(a=1)
$middle
return x + c['abc'], c.get('abc'), 'abc' in c
## dict from keys
d = dict.fromkeys('ab', [])
d['a'].append(1)
$middle
return x, d
## dict popitem
d = {'a': 1, 'b': 2}
last = d.popitem()
$middle
return x, last, d
## dict key error
try:
    {}['k']
except KeyError as e:
    $middle
    return x, e.args, repr(e)
## dict changed in loop
d = {1: 1}
try:
    for k in d:
        d[k + 1] = 1
except RuntimeError as e:
    $middle
    return x, str(e)
## dict tensor keys
d = {x: 1}
$middle
return x + d[x], x in d
## dict reversed
d = {'a': 1, 'b': 2}
$middle
return x, list(reversed(d)), list(reversed(d.items()))
## dict float keys
d = {1: 'int', 1.0: 'float', True: 'bool'}
$middle
return x, d, len(d)
## dict nan keys
n = float('nan')
d = {n: 1}
$middle
return x, n in d, float('nan') in d
## defaultdict
d = collections.defaultdict(list)
d['a'].append(1)
$middle
return x, d['b'], dict(d), 'c' in d
## counter
c = collections.Counter('abca')
c.update('a')
$middle
return x + c['a'], c['z'], c.most_common(1)
## counter arithmetic
c = collections.Counter(a=3) - collections.Counter(a=1, b=2)
$middle
return x, dict(c)
## ordered dict
d = collections.OrderedDict(a=1, b=2)
d.move_to_end('a')
$middle
return x, list(d), d == {'b': 2, 'a': 1}
## ordered dict equality
a, b = collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)
$middle
return x, a == b, dict(a) == b
## ordered dict popitem
d = collections.OrderedDict(a=1, b=2)
first = d.popitem(last=False)
$middle
return x, first, list(d)
## chain map
c = collections.ChainMap({'a': 1}, {'a': 2, 'b': 3})
$middle
return x + c['b'], c['a'], len(c)
## deque maxlen
d = collections.deque([1, 2, 3], maxlen=3)
d.append(4)
$middle
return x + d[0], list(d), d.maxlen
## deque rotate
d = collections.deque([1, 2, 3])
d.rotate(1)
d.extendleft([8, 9])
$middle
return x, list(d)
## deque kept
kept = collections.deque(maxlen=2)
---
kept.append(x.shape[0] + len(kept))
$middle
return x + len(kept)
---
list(kept)
## deque insert
d = collections.deque([1, 2])
d.insert(1, 9)
d.remove(2)
$middle
return x, list(d)
## namedtuple
P = collections.namedtuple('P', 'a b', defaults=[5])
---
p = P(1)
q = p._replace(a=3)
$middle
return x + p.b, q, q == (3, 5), p._fields
## namedtuple subclass
class P(collections.namedtuple('P', 'a b')):
    @property
    def total(self):
        return self.a + self.b
---
p = P(1, x)
$middle
return p.total, p._asdict(), type(p).__name__
## typed namedtuple
class P(typing.NamedTuple):
    a: int
    b: int = 4
    def total(self):
        return self.a * self.b
---
p = P(2)
$middle
return x + p.total(), p, p[1:]
## set operations
a = {1, 2, 3}
a ^= {3, 4}
a.discard(9)
$middle
return x, sorted(a), a >= {1}, a.isdisjoint({7})
## set kept
kept = set()
---
kept.add(x.shape[0])
$middle
kept.add('z')
return x + len(kept)
---
sorted(map(str, kept))
## set of tuples
s = {(1, 2), (1, 2), (2, 1)}
$middle
return x, len(s), (1, 2) in s
## frozen set
s = frozenset([1, 2])
d = {s: 5}
$middle
return x + d[frozenset([2, 1])], s | {3} == {1, 2, 3}
## mapping proxy
inner = {'a': 1}
---
p = types.MappingProxyType(inner)
inner['b'] = 2
$middle
return x + p['b'], sorted(p)
---
inner
## mapping proxy refuses
p = types.MappingProxyType({'a': 1})
try:
    p['a'] = 2
except TypeError:
    $middle
    return x + 10
return x
## range
r = range(1, 10, 3)
$middle
return x + r[-1], list(r[::-1]), 4 in r, r == range(1, 12, 3), r.index(7)
## slice object
s = slice(-2, None)
$middle
return x[s], s.indices(5), [1, 2, 3][s], s == slice(-2, None)
## string methods
s = f'{3.14159:.2f}|{7:>4}|{x.shape}'
$middle
return x, s, s.split('|'), 'abc'.center(7, '*'), 'a-b'.partition('-')
## string format of tensor
s = '{}'.format(tuple(x.shape))
$middle
return x, s, '%d %s' % (3, 'a'), 'x'.join('abc')
## bytes
b = bytes([1, 2]) + b'x'
a = bytearray(b)
a[0] = 9
$middle
return x, b, list(a)
## integers
$middle
return x, 7 // -2, -7 % 3, divmod(-7, 2), pow(3, -1, 7), (10).bit_length(), int('ff', 16), round(2.5), round(-1.5)
## floats
$middle
return x, round(2.675, 2), 7.5 // -2, -7.5 % 2, (0.5).as_integer_ratio(), float('inf') > 1, (2.0).is_integer()
## math
$middle
return x, math.copysign(1, -0.0), math.isclose(0.1 + 0.2, 0.3), math.fsum([0.1] * 10), math.gcd(12, 18), math.comb(5, 2), math.hypot(3, 4)
## min and max by key
items = ['aa', 'b', 'ccc']
$middle
return x, max(items, key=len), min(items, key=len), min([], default=4), max(3, 1, 2)
## zip strict
try:
    list(zip([1], [1, 2], strict=True))
except ValueError:
    $middle
    return x + 10
return x
## enumerate
out = [(i, v) for i, v in enumerate('abc', start=2)]
$middle
return x, out, list(reversed([1, 2])), sorted('bca', reverse=True)
## sum with start
$middle
return sum([x, x], start=torch.zeros(3)), sum([[1], [2]], []), any([]), all([])
## map and filter
out = list(map(lambda a, b: a * b, [1, 2], [3, 4, 5]))
$middle
return x, out, list(filter(None, [0, 1, '', 'a']))
## chained comparison
a = 5
$middle
return x, 1 < a <= 5 != 6, not a == 5, a if a > 3 else 0, (a or 1) and 7
## walrus
out = [y := 1, y + 1, (z := y * 5)]
$middle
return x + z, out, y
## match
match (1, {'k': [2, 3]}):
    case (1, {'k': [a, *rest]}):
        $middle
        return x + a, rest
return x
## match class
@dataclasses.dataclass
class P:
    a: int
    b: int
---
match P(1, 2):
    case P(a=1, b=b) if b > 1:
        $middle
        return x + b
    case _:
        return x
"""
)

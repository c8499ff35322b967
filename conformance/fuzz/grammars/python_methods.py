"""Special methods, inheritance and subclasses of builtins around tensors. The form is that of `python_containers`."""

from __future__ import annotations

from conformance.fuzz.grammar import parts

PARTS = parts(
    r"""
## len and bool
class Box:
    def __len__(self):
        return 0
---
b = Box()
$middle
return x + (1 if b else 2), bool(b), len(b)
## bool hook
class Box:
    def __bool__(self):
        return False
    def __len__(self):
        return 3
---
b = Box()
$middle
return x + (1 if b else 2), not b, b and 5, len(b)
## equality hook
class Box:
    def __init__(self, v):
        self.v = v
    def __eq__(self, other):
        return self.v == other.v
    def __hash__(self):
        return hash(self.v)
---
a, b = Box(1), Box(1)
$middle
return x, a == b, a != b, a in [b], len({a, b}), {a: 5}.get(b)
## comparison hooks
class Box:
    def __init__(self, v):
        self.v = v
    def __lt__(self, other):
        return self.v > other.v
---
$middle
return x, Box(1) < Box(2), [b.v for b in sorted([Box(1), Box(3)])], min(Box(1), Box(2)).v
## total ordering
@functools.total_ordering
class Box:
    def __init__(self, v):
        self.v = v
    def __eq__(self, other):
        return self.v == other.v
    def __lt__(self, other):
        return self.v < other.v
---
$middle
return x, Box(1) >= Box(1), Box(2) > Box(1), Box(1) <= Box(0)
## arithmetic hooks
class V:
    def __init__(self, v):
        self.v = v
    def __add__(self, other):
        return V(self.v + other)
    def __radd__(self, other):
        return V(other * 100)
    def __iadd__(self, other):
        self.v += 1000
        return self
    def __matmul__(self, other):
        return 'at'
    def __neg__(self):
        return V(-self.v)
---
a = V(1)
b = a
a += 5
$middle
return x + a.v, b.v, (2 + V(1)).v, (V(1) + 2).v, V(1) @ 2, (-a).v
## reflected with tensor
class V:
    def __radd__(self, other):
        return other * 3
    def __rmul__(self, other):
        return 'mine'
---
$middle
return x + V(), [1] * 2, 2 * V()
## item hooks
class Box:
    def __init__(self):
        self.d = {}
    def __getitem__(self, key):
        return self.d.get(key, -1)
    def __setitem__(self, key, value):
        self.d[key] = value * 2
    def __delitem__(self, key):
        self.d.pop(key)
    def __contains__(self, key):
        return key == 'magic'
---
b = Box()
b['a'] = 2
b[1, 2] = 3
del b['a']
$middle
return x + b[1, 2], b['a'], 'a' in b, 'magic' in b
## iteration hooks
class Box:
    def __iter__(self):
        yield 1
        yield 2
---
$middle
return x, list(Box()), sum(Box()), 2 in Box(), [*Box()], max(Box())
## old iteration
class Box:
    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i * 10
---
$middle
return x, list(Box()), 20 in Box()
## next hook
class Down:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n
---
d = Down(3)
first = next(d)
$middle
return x + first, list(d), next(d, 'end')
## call hook
class Fn:
    calls = 0
    def __call__(self, t, k=2):
        self.calls += 1
        return t * k
fn = Fn()
---
y = fn(x)
$middle
return fn(y, k=3)
---
fn.calls, Fn.calls
## index and int hooks
class N:
    def __index__(self):
        return 1
    def __int__(self):
        return 7
    def __float__(self):
        return 2.5
---
$middle
return x[N()], [5, 6][N()], int(N()), float(N()), hex(N()), range(N())
## format and repr hooks
class N:
    def __repr__(self):
        return 'N!'
    def __format__(self, spec):
        return 'f' + spec
---
$middle
return x, f'{N()}', f'{N()!r}', f'{N():ab}', str(N()), str([N()])
## string hook
class N:
    def __str__(self):
        return 'text'
---
$middle
return x, str(N()), f'{N()}', '%s' % N(), 'a' + str(N())
## inheritance and super
class A:
    def v(self):
        return ['A']
class B(A):
    def v(self):
        return ['B', *super().v()]
class C(A):
    def v(self):
        return ['C', *super().v()]
class D(B, C):
    def v(self):
        return ['D', *super().v()]
---
$middle
return x, D().v(), [c.__name__ for c in D.__mro__][:4], super(B, D()).v()
## class and static methods
class A:
    n = 1
    @classmethod
    def make(cls, n):
        self = cls()
        self.n = n
        return self
    @staticmethod
    def twice(n):
        return n * 2
class B(A):
    n = 5
---
b = B.make(4)
$middle
return x + b.n, type(b).__name__, A.twice(3), b.twice(2), B.n
## class method writes
class A:
    n = 0
    @classmethod
    def bump(cls):
        cls.n += 1
        return cls.n
class B(A):
    pass
---
v = B.bump()
$middle
return x + v + A.bump()
---
A.n, B.n, 'n' in vars(B)
## abstract class
class A(abc.ABC):
    @abc.abstractmethod
    def v(self): ...
class B(A):
    def v(self):
        return 3
---
try:
    A()
except TypeError:
    $middle
    return x + B().v(), isinstance(B(), A), issubclass(B, A)
return x
## instance check hook
class Meta(type):
    def __instancecheck__(cls, obj):
        return obj == 5
class A(metaclass=Meta):
    pass
---
$middle
return x, isinstance(5, A), isinstance(A(), A), isinstance(4, (A, str))
## class property of instance
class A:
    pass
class Fake:
    @property
    def __class__(self):
        return A
---
$middle
return x, isinstance(Fake(), A), type(Fake()).__name__, Fake().__class__ is A
## metaclass call
class Meta(type):
    def __call__(cls, *args):
        obj = super().__call__(*args)
        obj.tag = 'made'
        return obj
class A(metaclass=Meta):
    def __init__(self, v):
        self.v = v
---
a = A(3)
$middle
return x + a.v, a.tag
## init subclass
class Base:
    names = []
    def __init_subclass__(cls, **kwargs):
        Base.names.append(cls.__name__)
---
class Sub(Base):
    pass
$middle
return x + len(Base.names)
---
Base.names
## new returns another
class A:
    def __new__(cls, v):
        if v > 2:
            return 'other'
        return super().__new__(cls)
    def __init__(self, v):
        self.v = v
---
$middle
return x, A(3), A(1).v
## singleton
class One:
    only = None
    def __new__(cls):
        if cls.only is None:
            cls.only = super().__new__(cls)
        return cls.only
---
a, b = One(), One()
$middle
return x, a is b, One.only is a
## int subclass
class N(int):
    def __add__(self, other):
        return 'sum'
---
n = N(3)
$middle
return x * n, n + 1, 1 + n, n * 2, type(n).__name__
## str subclass
class S(str):
    def shout(self):
        return self.upper() + '!'
---
s = S('ab')
$middle
return x, s.shout(), s == 'ab', {s: 1}['ab'], s + 'c'
## float subclass
class X(float):
    unit = 'm'
---
v = X(2.5)
v.note = 'hi'
$middle
return x * v, v.unit, v.note, v == 2.5
## del hook
class Box:
    def __init__(self, log):
        self.log = log
    def __del__(self):
        self.log.append('gone')
---
b = Box(log)
del b
$middle
return x
## identity of kept objects
class Box:
    n = 0
a = Box()
b = a
---
if a is b:
    a.n += 1
$middle
return x + b.n, a is b, a == b
---
a.n
## method bound twice
class Box:
    def m(self):
        return 1
---
b = Box()
$middle
return x, b.m == b.m, b.m is b.m, b.m.__self__ is b, b.m.__name__, b.m.__func__ is Box.m
## function attributes
def helper(t):
    helper.calls += 1
    return t * helper.calls
helper.calls = 0
---
y = helper(x)
$middle
return helper(y), helper.__name__
---
helper.calls
"""
)

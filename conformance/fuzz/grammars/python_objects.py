"""Attributes, properties, descriptors, dataclasses and enums around tensors. The form is that of `python_containers`."""

from __future__ import annotations

from conformance.fuzz.grammar import parts

PARTS = parts(
    r"""
## property with setter
class Box:
    def __init__(self):
        self._v = 1
    @property
    def v(self):
        return self._v * 2
    @v.setter
    def v(self, value):
        self._v = value + 1
---
b = Box()
b.v = 5
$middle
return x + b.v, b._v
## property on a kept object
class Box:
    _v = 0
    @property
    def v(self):
        return self._v
    @v.setter
    def v(self, value):
        self._v = value * 2
box = Box()
---
box.v = box.v + 1
$middle
return x + box.v
---
box._v
## property deleter
class Box:
    @property
    def v(self):
        return 4
    @v.deleter
    def v(self):
        self.gone = True
---
b = Box()
del b.v
$middle
return x + b.v, b.gone
## data descriptor
class Field:
    def __set_name__(self, owner, name):
        self.name = '_' + name
    def __get__(self, obj, owner):
        return getattr(obj, self.name, 0) + 1
    def __set__(self, obj, value):
        setattr(obj, self.name, value * 10)
class Box:
    v = Field()
---
b = Box()
b.v = 2
$middle
return x + b.v, vars(b)
## descriptor on a kept object
class Field:
    def __get__(self, obj, owner):
        obj.reads += 1
        return obj.reads
class Box:
    v = Field()
    reads = 0
box = Box()
---
n = box.v
$middle
return x + n + box.v
---
box.reads
## non-data descriptor shadowed
class Field:
    def __get__(self, obj, owner):
        return 5
class Box:
    v = Field()
---
b = Box()
before = b.v
b.__dict__['v'] = 7
$middle
return x + before, b.v
## slots
class Box:
    __slots__ = ('v',)
---
b = Box()
b.v = 1
$middle
try:
    b.w = 2
except AttributeError:
    return x + 10
return x + b.w
## slots unset
class Box:
    __slots__ = ('v',)
---
b = Box()
$middle
return x, hasattr(b, 'v'), getattr(b, 'v', 3)
## getattr hook
class Box:
    def __getattr__(self, name):
        if name.startswith('v'):
            return len(name)
        raise AttributeError(name)
---
b = Box()
$middle
return x + b.vvv, hasattr(b, 'w'), getattr(b, 'w', 4)
## getattribute hook
class Box:
    v = 2
    def __getattribute__(self, name):
        value = object.__getattribute__(self, name)
        return value + 1 if name == 'v' else value
---
b = Box()
$middle
return x + b.v
## setattr hook
class Box:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)
---
b = Box()
b.v = 3
$middle
b.v += 1
return x + b.v
## setattr hook on a kept object
class Box:
    def __setattr__(self, name, value):
        self.__dict__[name] = value + 100
box = Box()
---
box.v = 3
$middle
return x + box.v
---
vars(box)
## delattr
class Box:
    v = 1
box = Box()
box.v = 2
---
had = 'v' in vars(box)
if had:
    del box.v
$middle
return x + box.v, had
---
vars(box)
## class attribute written
class Box:
    total = 0
---
Box.total += 1
$middle
return x + Box.total
---
Box.total
## class attribute list
class Box:
    seen = []
---
Box.seen.append(x.shape[0])
$middle
return x + len(Box.seen)
---
Box.seen
## class attribute dict
class Box:
    seen = {}
box = Box()
---
box.seen[len(box.seen)] = 1
$middle
return x + len(Box.seen)
---
Box.seen
## class attribute by type
class Box:
    total = 0
box = Box()
---
type(box).total += 2
$middle
box.__class__.total += 1
return x + box.total
---
Box.total, vars(box)
## counter of instances
class Box:
    made = 0
    def __init__(self):
        Box.made += 1
        self.number = Box.made
---
a, b = Box(), Box()
$middle
return x + b.number, a.number
---
Box.made
## local class
---
class Local:
    n = 3
    def get(self):
        return self.n
$middle
return x + Local().get(), Local.__name__
---
None
## local class writes closure
---
seen = []
class Local:
    def note(self, v):
        seen.append(v)
        log.append(v)
Local().note(len(log))
$middle
return x + len(seen)
---
None
## dataclass
@dataclasses.dataclass
class P:
    a: int
    b: list = dataclasses.field(default_factory=list)
---
p, q = P(1), P(1)
p.b.append(2)
$middle
return x + p.a, p == q, q.b, dataclasses.asdict(p), repr(q)
## dataclass order
@dataclasses.dataclass(order=True)
class P:
    a: int
    b: str = 'z'
---
$middle
return x, P(1) < P(2), max(P(1, 'a'), P(1, 'b')).b, sorted([P(2), P(1)])[0].a
## dataclass frozen
@dataclasses.dataclass(frozen=True)
class P:
    a: int
---
p = P(3)
try:
    p.a = 4
except dataclasses.FrozenInstanceError:
    $middle
    return x + p.a, hash(p) == hash(P(3)), dataclasses.replace(p, a=5).a
return x
## dataclass post init
@dataclasses.dataclass
class P:
    a: int
    twice: int = dataclasses.field(init=False)
    def __post_init__(self):
        self.twice = self.a * 2
---
p = P(4)
p.a = 9
$middle
return x + p.twice, [f.name for f in dataclasses.fields(p)]
## dataclass kept
@dataclasses.dataclass
class P:
    a: int = 0
    t: object = None
p = P()
---
p.a += 1
p.t = x + 1
$middle
p.t.mul_(2)
return x + p.a
---
p.a, p.t
## enum
class Mode(enum.Enum):
    A = 1
    B = 2
    C = 1
---
m = Mode(2)
$middle
return x + m.value, m is Mode.B, Mode['A'].name, len(Mode), Mode.C is Mode.A, [e.name for e in Mode]
## int enum
class Mode(enum.IntEnum):
    A = 1
    B = 2
---
$middle
return x + Mode.B, Mode.A < Mode.B, Mode.A + 1, int(Mode.B), {Mode.A: 5}[1]
## flags
class Bits(enum.Flag):
    A = 1
    B = 2
---
both = Bits.A | Bits.B
$middle
return x, Bits.A in both, both.value, (both & ~Bits.A) == Bits.B
"""
)

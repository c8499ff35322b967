"""Where a value lives between two calls: how it is defined, how it is read, and how it is changed. `$old` and `$new` are
values."""

from __future__ import annotations

PLACES: dict[str, tuple[str, str, str]] = {
    "global": ("value = $old", "v = value", "global value\nvalue = $new"),
    "attribute": ("class Box:\n    pass\nbox = Box()\nbox.v = $old", "v = box.v", "box.v = $new"),
    "class attribute": ("class Box:\n    v = $old", "v = Box.v", "Box.v = $new"),
    "class attribute by instance": ("class Box:\n    v = $old\nbox = Box()", "v = box.v", "Box.v = $new"),
    "instance hides class": ("class Box:\n    v = $old\nbox = Box()", "v = box.v", "box.v = $new"),
    "instance no longer hides class": (
        "class Box:\n    v = $new\nbox = Box()\nbox.v = $old",
        "v = box.v",
        "del box.v",
    ),
    "base class": ("class Base:\n    v = $old\nclass Box(Base):\n    pass\nbox = Box()", "v = box.v", "Base.v = $new"),
    "subclass hides base": (
        "class Base:\n    v = $old\nclass Box(Base):\n    pass\nbox = Box()",
        "v = box.v",
        "Box.v = $new",
    ),
    "bases": (
        "class One:\n    v = $old\nclass Two:\n    v = $new\nclass Box(One):\n    pass\nbox = Box()",
        "v = box.v",
        "Box.__bases__ = (Two,)",
    ),
    "class of instance": (
        "class One:\n    v = $old\nclass Two:\n    v = $new\nbox = One()",
        "v = box.v",
        "box.__class__ = Two",
    ),
    "metaclass": (
        "class Meta(type):\n    v = $old\nclass Box(metaclass=Meta):\n    pass",
        "v = Box.v",
        "Meta.v = $new",
    ),
    "property": (
        "class Box:\n    @property\n    def v(self):\n        return $old\nbox = Box()",
        "v = box.v",
        "Box.v = property(lambda self: $new)",
    ),
    "property's field": (
        "class Box:\n    field = $old\n    @property\n    def v(self):\n        return self.field\nbox = Box()",
        "v = box.v",
        "box.field = $new",
    ),
    "slot": ('class Box:\n    __slots__ = ("v",)\nbox = Box()\nbox.v = $old', "v = box.v", "box.v = $new"),
    "method": (
        "class Box:\n    def v(self):\n        return $old\nbox = Box()",
        "v = box.v()",
        "Box.v = lambda self: $new",
    ),
    "method of instance": (
        "class Box:\n    def v(self):\n        return $old\nbox = Box()",
        "v = box.v()",
        "box.v = lambda: $new",
    ),
    "method's code": (
        "class Box:\n    def v(self):\n        return $old\nbox = Box()",
        "v = box.v()",
        "Box.v.__code__ = (lambda self: $new).__code__",
    ),
    "static method": (
        "class Box:\n    @staticmethod\n    def v():\n        return $old",
        "v = Box.v()",
        "Box.v = staticmethod(lambda: $new)",
    ),
    "class method": (
        "class Box:\n    field = $old\n    @classmethod\n    def v(cls):\n        return cls.field",
        "v = Box.v()",
        "Box.field = $new",
    ),
    "__call__": (
        "class Box:\n    def __call__(self):\n        return $old\nbox = Box()",
        "v = box()",
        "Box.__call__ = lambda self: $new",
    ),
    "__getattr__": (
        "class Box:\n    def __getattr__(self, name):\n        return $old\nbox = Box()",
        "v = box.v",
        "box.v = $new",
    ),
    "__getattr__ replaced": (
        "class Box:\n    def __getattr__(self, name):\n        return $old\nbox = Box()",
        "v = box.v",
        "Box.__getattr__ = lambda self, name: $new",
    ),
    "__getitem__": (
        "class Box:\n    def __getitem__(self, name):\n        return $old\nbox = Box()",
        "v = box[0]",
        "Box.__getitem__ = lambda self, name: $new",
    ),
    "__init__": (
        "class Box:\n    def __init__(self):\n        self.v = $old",
        "v = Box().v",
        "def init(self):\n    self.v = $new\nBox.__init__ = init",
    ),
    "__new__ default": (
        "class Box:\n    def __init__(self, v=$old):\n        self.v = v",
        "v = Box().v",
        "Box.__init__.__defaults__ = ($new,)",
    ),
    "dataclass default": (
        "@dataclasses.dataclass\nclass Box:\n    v: object = $old",
        "v = Box().v",
        "Box.__init__.__defaults__ = ($new,)",
    ),
    "function": ("def v_of():\n    return $old", "v = v_of()", "global v_of\nv_of = lambda: $new"),
    "function's code": ("def v_of():\n    return $old", "v = v_of()", "v_of.__code__ = (lambda: $new).__code__"),
    "function's default": ("def v_of(v=$old):\n    return v", "v = v_of()", "v_of.__defaults__ = ($new,)"),
    "keyword default": ("def v_of(*, v=$old):\n    return v", "v = v_of()", 'v_of.__kwdefaults__["v"] = $new'),
    "function's attribute": ("def v_of():\n    return v_of.v\nv_of.v = $old", "v = v_of()", "v_of.v = $new"),
    "closure": (
        "def make():\n    v = $old\n    def get():\n        return v\n    def put(new):\n        nonlocal v\n"
        "        v = new\n    return get, put\nget, put = make()",
        "v = get()",
        "put($new)",
    ),
    "cell contents": (
        "def make():\n    v = $old\n    def get():\n        return v\n    return get\nget = make()",
        "v = get()",
        "get.__closure__[0].cell_contents = $new",
    ),
    "partial": (
        "def v_of(v):\n    return v\nget = functools.partial(v_of, $old)",
        "v = get()",
        "global get\nget = functools.partial(v_of, $new)",
    ),
    "partial's keyword": (
        "def v_of(v):\n    return v\nget = functools.partial(v_of, v=$old)",
        "v = get()",
        'get.keywords["v"] = $new',
    ),
    "dict": ('d = {"v": $old}', 'v = d["v"]', 'd["v"] = $new'),
    "dict key absent": ("d = {}", 'v = d.get("v", $old)', 'd["v"] = $new'),
    "dict key error": (
        "d = {}",
        'try:\n    v = d["v"]\nexcept KeyError:\n    v = $old',
        'd["v"] = $new',
    ),
    "dict in": ("d = {}", 'v = d["v"] if "v" in d else $old', 'd["v"] = $new'),
    "dict setdefault": ("d = {}", 'v = d.setdefault("v", $old)', 'd["v"] = $new'),
    "defaultdict": (
        "d = collections.defaultdict(lambda: $old)",
        'v = d["v"]',
        'd["v"] = $new',
    ),
    "default factory": (
        "d = collections.defaultdict(lambda: $old)",
        'v = d["v"]\ndel d["v"]',
        "d.default_factory = lambda: $new",
    ),
    "OrderedDict order": (
        "d = collections.OrderedDict(a=$old, b=$new)",
        "v = next(iter(d.values()))",
        'd.move_to_end("a")',
    ),
    "dict order": ("d = dict(a=$old, b=$new)", "v = next(iter(d.values()))", 'd["a"] = d.pop("a")\nd["b"] = $new'),
    "ChainMap": (
        'd = collections.ChainMap({}, {"v": $old})',
        'v = d["v"]',
        'd.maps[0]["v"] = $new',
    ),
    "mapping proxy": ('inner = {"v": $old}\nd = types.MappingProxyType(inner)', 'v = d["v"]', 'inner["v"] = $new'),
    "dict subclass": (
        "class Config(dict):\n    pass\nd = Config(v=$old)",
        'v = d["v"]',
        'd["v"] = $new',
    ),
    "dict's __missing__": (
        "class Config(dict):\n    def __missing__(self, key):\n        return $old\nd = Config()",
        'v = d["v"]',
        'd["v"] = $new',
    ),
    "list": ("items = [$old]", "v = items[0]", "items[0] = $new"),
    "list end": ("items = [$old]", "v = items[-1]", "items.append($new)"),
    "nested list": ("items = [[$old]]", "v = items[0][0]", "items[0][0] = $new"),
    "tuple of list": ("items = ([$old],)", "v = items[0][0]", "items[0][0] = $new"),
    "list sorted": ("items = [3, 1, 2]", "v = items[0]", "items.sort()"),
    "deque": ("items = collections.deque([$old])", "v = items[0]", "items[0] = $new"),
    "deque left": ("items = collections.deque([$old])", "v = items[0]", "items.appendleft($new)"),
    "set": ("items = set()", "v = $new if 5 in items else $old", "items.add(5)"),
    "frozenset rebound": (
        "items = frozenset()",
        "v = $new if 5 in items else $old",
        "global items\nitems = frozenset({5})",
    ),
    "list contains": ("items = [1]", "v = $new if 5 in items else $old", "items.append(5)"),
    "isinstance": (
        "class A:\n    pass\nclass B:\n    pass\nbox = A()",
        "v = $new if isinstance(box, B) else $old",
        "global box\nbox = B()",
    ),
    "abc register": (
        "class A(abc.ABC):\n    pass\nclass B:\n    pass\nbox = B()",
        "v = $new if isinstance(box, A) else $old",
        "A.register(B)",
    ),
    "hasattr": ("class Box:\n    pass\nbox = Box()", 'v = $new if hasattr(box, "w") else $old', "box.w = 1"),
    "hasattr of class": ("class Box:\n    pass\nbox = Box()", 'v = $new if hasattr(box, "w") else $old', "Box.w = 1"),
    "getattr default": ("class Box:\n    pass\nbox = Box()", 'v = getattr(box, "v", $old)', "box.v = $new"),
    "getattr default of class": ("class Box:\n    pass\nbox = Box()", 'v = getattr(box, "v", $old)', "Box.v = $new"),
    "attribute error": (
        "class Box:\n    pass\nbox = Box()",
        "try:\n    v = box.v\nexcept AttributeError:\n    v = $old",
        "box.v = $new",
    ),
    "attribute error of class": (
        "class Box:\n    pass\nbox = Box()",
        "try:\n    v = box.v\nexcept AttributeError:\n    v = $old",
        "Box.v = $new",
    ),
    "name error": (
        "",
        "try:\n    v = later\nexcept NameError:\n    v = $old",
        "global later\nlater = $new",
    ),
    "builtin shadowed": ("", "v = $old if len([1]) == 1 else $new", "global len\nlen = lambda items: 9"),
    "builtin replaced": (
        "import builtins\nbuiltins.fuzz_v = $old",
        "v = fuzz_v",
        "builtins.fuzz_v = $new",
    ),
    "module attribute": (
        'world = types.ModuleType("world")\nworld.v = $old',
        "v = world.v",
        "world.v = $new",
    ),
    "imported inside": (
        'import sys\nsys.modules["fuzz_world"] = types.ModuleType("fuzz_world")\nsys.modules["fuzz_world"].v = $old',
        "import fuzz_world\nv = fuzz_world.v",
        'other = types.ModuleType("fuzz_world")\nother.v = $new\nsys.modules["fuzz_world"] = other',
    ),
    "from import inside": (
        'import sys\nsys.modules["fuzz_world"] = types.ModuleType("fuzz_world")\nsys.modules["fuzz_world"].v = $old',
        "from fuzz_world import v",
        'sys.modules["fuzz_world"].v = $new',
    ),
    "environment": (
        'import os\nos.environ["FUZZ_V"] = "1"',
        'v = $old if os.environ["FUZZ_V"] == "1" else $new',
        'os.environ["FUZZ_V"] = "2"',
    ),
    "enum": (
        "class Mode(enum.Enum):\n    A = 1\n    B = 2\nmode = Mode.A",
        "v = $old if mode is Mode.A else $new",
        "global mode\nmode = Mode.B",
    ),
    "namedtuple": (
        'Pair = collections.namedtuple("Pair", "v w")\npair = Pair($old, 1)',
        "v = pair.v",
        "global pair\npair = pair._replace(v=$new)",
    ),
    "contextvar": (
        'var = contextvars.ContextVar("v")\nvar.set($old)',
        "v = var.get()",
        "var.set($new)",
    ),
    "thread local": ("local = threading.local()\nlocal.v = $old", "v = local.v", "local.v = $new"),
    "simple namespace": ("box = types.SimpleNamespace(v=$old)", "v = box.v", "box.v = $new"),
    "cached property": (
        "class Box:\n    field = $old\n    @functools.cached_property\n    def v(self):\n        return self.field\n"
        "box = Box()",
        "v = box.v",
        "box.field = $new\ndel box.v",
    ),
    "descriptor": (
        "class Field:\n    v = $old\n    def __get__(self, obj, owner):\n        return Field.v\n"
        "class Box:\n    v = Field()\nbox = Box()",
        "v = box.v",
        "Field.v = $new",
    ),
    "iterator": ("values = iter([$old, $old, $new, $new])", "v = next(values)", "pass"),
    "counter": ("numbers = itertools.count(1)", "v = next(numbers)", "pass"),
    "generator": (
        "def numbers():\n    yield $old\n    yield $old\n    yield $new\n    yield $new\nvalues = numbers()",
        "v = next(values)",
        "pass",
    ),
    "weak reference": (
        "class Box:\n    pass\nbox = Box()\nbox.v = $old\nref = weakref.ref(box)",
        "v = ref().v",
        "box.v = $new",
    ),
    "wrapped": (
        "def decorate(fn):\n    @functools.wraps(fn)\n    def inner():\n        return fn() + decorate.extra\n    return inner\n"
        "decorate.extra = 0\n@decorate\ndef v_of():\n    return 1",
        "v = v_of()",
        "decorate.extra = 5",
    ),
    "type's name": ("class Box:\n    pass", 'v = $old if Box.__name__ == "Box" else $new', 'Box.__name__ = "Other"'),
    "subclass list": (
        "class Box:\n    pass",
        "v = $old if len(Box.__subclasses__()) == 0 else $new",
        "class More(Box):\n    pass\nglobal kept\nkept = More",
    ),
    "range": ("r = range(2)", "v = $old if len(r) == 2 else $new", "global r\nr = range(3)"),
    "slice": ("s = slice(0, 1)", "v = [$old, $new][s][0]", "global s\ns = slice(1, 2)"),
    "unbound method": (
        "op = torch.Tensor.__add__",
        "v = op(torch.tensor(3.0), 2)",
        "global op\nop = torch.Tensor.__mul__",
    ),
    "operator": ("op = operator.add", "v = op(3.0, 2.0)", "global op\nop = operator.mul"),
    "torch function": ("op = torch.sin", "v = op(torch.tensor(3.0))", "global op\nop = torch.cos"),
    "bound method": (
        "class Box:\n    def __init__(self, v):\n        self.v = v\n    def get(self):\n        return self.v\n"
        "get = Box($old).get",
        "v = get()",
        "global get\nget = Box($new).get",
    ),
    "builtin method": ("op = [5, 5, 6].count", "v = op(5)", "global op\nop = [5, 6, 6].count"),
    "exception class": (
        "class Wrong(Exception):\n    pass\nraised = Wrong",
        "try:\n    raise raised()\nexcept Wrong:\n    v = $old\nexcept Exception:\n    v = $new",
        "global raised\nraised = KeyError",
    ),
    "default dtype": (
        "",
        "v = $old if torch.get_default_dtype() == torch.float32 else $new",
        "torch.set_default_dtype(torch.float64)",
    ),
    "grad mode": ("", "v = $old if torch.is_grad_enabled() else $new", "torch.set_grad_enabled(False)"),
    "deterministic": (
        "",
        "v = $new if torch.are_deterministic_algorithms_enabled() else $old",
        "torch.use_deterministic_algorithms(True)",
    ),
    "autocast": (
        "",
        "v = $new if torch.is_autocast_enabled('cpu') else $old",
        "torch.set_autocast_enabled('cpu', True)",
    ),
}

"""Context managers, closures, arguments and loops around tensors. The form is that of `python_containers`."""

from __future__ import annotations

from conformance.fuzz.grammar import parts

PARTS = parts(
    r"""
## suppress
---
with contextlib.suppress(KeyError):
    log.append('in')
    {}['k']
    log.append('never')
$middle
return x
---
None
## context manager class
class Scope:
    def __init__(self, log):
        self.log = log
    def __enter__(self):
        self.log.append('enter')
        return 3
    def __exit__(self, kind, error, tb):
        self.log.append('exit' if kind is None else kind.__name__)
        return kind is ValueError
---
with Scope(log) as k:
    y = x + k
    $middle
with Scope(log):
    raise ValueError('swallowed')
return y
## context manager function
@contextlib.contextmanager
def scope(log):
    log.append('enter')
    try:
        yield 4
    finally:
        log.append('exit')
---
with scope(log) as k:
    y = x * k
    $middle
return y
## context manager local
---
class Scope:
    def __enter__(self):
        log.append('enter')
    def __exit__(self, *args):
        log.append('exit')
with Scope():
    y = x + 1
    $middle
return y
---
None
## context manager as decorator
@contextlib.contextmanager
def scope():
    marks.append('enter')
    yield
    marks.append('exit')
marks = []
@scope()
def helper(t):
    return t + len(marks)
---
y = helper(x)
$middle
return y
---
marks
## context manager returns early
class Scope:
    def __init__(self, log):
        self.log = log
    def __enter__(self):
        return self
    def __exit__(self, *args):
        self.log.append('exit')
---
for k in range(3):
    with Scope(log):
        if k == 1:
            return x + k
        $middle
return x
## exit stack
---
with contextlib.ExitStack() as stack:
    stack.callback(log.append, 'first')
    stack.callback(log.append, 'second')
    stack.enter_context(torch.no_grad())
    y = x + 1
    $middle
return y, torch.is_grad_enabled()
---
None
## nested modes
---
w = torch.ones(2, requires_grad=True)
out = []
with torch.no_grad():
    out.append((w * 2).requires_grad)
    with torch.enable_grad():
        $middle
        out.append((w * 2).requires_grad)
    out.append((w * 2).requires_grad)
return x, out
---
None
## set grad enabled stays
---
torch.set_grad_enabled(False)
w = torch.ones(2, requires_grad=True)
y = w * 2
$middle
torch.set_grad_enabled(True)
return x, y.requires_grad, (w * 2).requires_grad
---
None
## autocast
---
with torch.autocast('cpu', dtype=torch.bfloat16):
    y = torch.ones(3, 3) @ torch.ones(3, 3)
    $middle
    with torch.autocast('cpu', enabled=False):
        z = torch.ones(3, 3) @ torch.ones(3, 3)
return x, y.dtype == torch.bfloat16, z.dtype == torch.float32
---
None
## default dtype
---
before = torch.get_default_dtype()
torch.set_default_dtype(torch.float64)
y = torch.ones(2) * 0.1
$middle
torch.set_default_dtype(before)
return y, torch.ones(1)
---
None
## inference mode
---
with torch.inference_mode():
    y = x + 1
    $middle
return y.is_inference(), torch.is_inference_mode_enabled()
---
None
## closure in loop
---
fns = [lambda t, k=k: t * k for k in range(3)]
late = [lambda: k for k in range(3)]
$middle
return [f(x) for f in fns], [f() for f in late]
---
None
## nonlocal counter
def make():
    n = 0
    def bump():
        nonlocal n
        n += 1
        return n
    return bump
bump = make()
---
a = bump()
$middle
return x + a * 10 + bump()
---
bump()
## nonlocal in program
---
n = 0
def bump(k):
    nonlocal n
    n += k
bump(2)
$middle
bump(3)
return x + n
---
None
## closure sees later
---
def get():
    return value
value = 1
a = get()
value = 5
$middle
return x + get(), a
---
None
## unbound closure
---
def get():
    return missing
try:
    get()
except NameError as e:
    $middle
    missing = 3
    return x + get()
---
None
## deleted local
---
v = 3
del v
$middle
try:
    return x + v
except UnboundLocalError:
    return x - 1
---
None
## default arguments
def collect(v, seen=[]):
    seen.append(v)
    return len(seen)
---
a = collect(1)
$middle
return x + a, collect(2)
---
collect.__defaults__
## keyword only
def helper(t, /, a, *rest, b=2, **more):
    return t * a + b + len(rest) + len(more)
---
$middle
return helper(x, 1, 5, 6, b=3, c=4), helper(x, a=2), helper(*[x, 1], **{'b': 9})
## wrong arguments
def helper(a, b):
    return a
---
try:
    helper(x)
except TypeError:
    $middle
    return x + 5
return x
## decorator with state
def counted(fn):
    @functools.wraps(fn)
    def inner(*args):
        inner.calls += 1
        return fn(*args) * inner.calls
    inner.calls = 0
    return inner
@counted
def helper(t):
    return t + 1
---
y = helper(x)
$middle
return helper(y), helper.__name__
---
helper.calls
## recursion
def depth(t, n):
    return t if n == 0 else depth(t + n, n - 1)
---
$middle
return depth(x, 4)
## loop else
---
for k in range(3):
    if k == 5:
        break
else:
    log.append('else')
    $middle
while True:
    x = x + 1
    if k > 3:
        break
    k += 1
return x, k
---
None
## loop over changing list
---
items = [1, 2, 3]
out = []
for v in items:
    out.append(v)
    if v == 1:
        items.append(9)
    if len(out) > 6:
        break
    $middle
return x, out
---
None
## loop variable stays
---
for k in range(3):
    $middle
squares = [k * k for k in range(9)]
return x + k, len(squares)
---
None
## swap and chained assignment
---
a = b = [1]
a, b = b + [2], a
a[0], i = 5, 0
$middle
return x, a, b, i
---
None
## augmented evaluation order
---
def at(k):
    log.append(k)
    return k
items = [1, 2]
items[at(0)] += at(1)
d = {at('k'): at('v')}
$middle
return x + items[0], d
---
None
## short circuit
---
def note(v):
    log.append(v)
    return v
r = note(0) or note(2) and note(3)
$middle
return x + r, [note(1) if False else note(4)]
---
None
## string of locals
---
a = 1
names_here = sorted(k for k in locals() if len(k) == 1)
$middle
return x, names_here
---
None
## eval free star
---
args, more = (x,), {'dim': 0}
y = torch.sum(*args, **more)
$middle
return y, torch.stack([*args, *args]).shape
---
None
## type hints and cast
---
v: int = 3
w = typing.cast(float, v)
$middle
return x * w, v.__class__.__name__
---
None
## global function defined inside
---
global made
def made(t):
    return t * 5
$middle
return made(x)
---
made.__name__
## tensor written in branch
---
if x.shape[0] == 3:
    x[0] = 9
else:
    x[1] = 9
$middle
x += 1
return x.sum()
---
None
## out argument
---
out = torch.empty(3)
torch.add(x, 1, out=out)
$middle
torch.mul(out, 2, out=out)
return out
---
None
## hook on intermediate
---
w = torch.ones(3, requires_grad=True)
y = w * 2
seen = []
y.register_hook(lambda g: seen.append(1) or g * 10)
$middle
y.sum().backward()
return w.grad, len(seen)
---
None
## retain_grad
---
w = torch.ones(3, requires_grad=True)
y = w * 2
y.retain_grad()
$middle
(y * 3).sum().backward()
return w.grad, y.grad
---
None
## backward inside
---
w = torch.ones(3, requires_grad=True)
(w * x).sum().backward()
$middle
(w * 2).sum().backward()
return w.grad
---
None
## grad inside
---
w = torch.ones(3, requires_grad=True)
(g,) = torch.autograd.grad((w ** 3).sum(), w, create_graph=True)
$middle
(h,) = torch.autograd.grad(g.sum(), w)
return g.detach(), h
---
None
## requires_grad_ inside
---
y = (x * 2).detach().requires_grad_()
$middle
(y * y).sum().backward()
return y.grad, y.is_leaf, y.requires_grad
---
None
"""
)

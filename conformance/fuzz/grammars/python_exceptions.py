"""Exceptions around tensors. The form is that of `python_containers`."""

from __future__ import annotations

from conformance.fuzz.grammar import parts

PARTS = parts(
    r"""
## exception caught
---
try:
    log.append('try')
    raise ValueError('no', 3)
except (KeyError, ValueError) as e:
    log.append('except')
    $middle
    return x + e.args[1], str(e.args)
finally:
    log.append('finally')
---
None
## exception else
---
try:
    y = x + 1
except ValueError:
    log.append('except')
else:
    log.append('else')
    $middle
finally:
    log.append('finally')
return y
---
None
## exception chain
---
try:
    try:
        raise KeyError('a')
    except KeyError as e:
        raise ValueError('b') from e
except ValueError as e:
    $middle
    return x, type(e.__cause__).__name__, e.__cause__.args, type(e.__context__).__name__
---
None
## exception context
---
try:
    try:
        raise KeyError('a')
    finally:
        raise ValueError('b')
except ValueError as e:
    $middle
    return x, type(e.__context__).__name__, e.__suppress_context__
---
None
## exception raised out
---
log.append(1)
y = x.add_(1)
$middle
log.append(2)
raise ValueError('out')
---
None
## exception reraised
---
try:
    try:
        raise KeyError('k')
    except KeyError:
        log.append('again')
        raise
except LookupError as e:
    $middle
    return x, e.args
---
None
## exception in finally return
def inner(log):
    try:
        raise ValueError
    finally:
        log.append('f')
        return 5
---
n = inner(log)
$middle
return x + n
## exception class
class Wrong(Exception):
    def __init__(self, code):
        super().__init__(f'code {code}')
        self.code = code
---
try:
    raise Wrong(4)
except Wrong as e:
    $middle
    return x + e.code, str(e), isinstance(e, Exception), e.args
## exception name deleted
---
e = 'kept'
try:
    raise ValueError
except ValueError as e:
    pass
$middle
try:
    return x, e
except UnboundLocalError:
    return x, 'unbound'
---
None
## exception loop control
---
out = []
for k in range(4):
    try:
        if k == 1:
            continue
        if k == 3:
            break
        out.append(k)
    finally:
        out.append('f')
    $middle
else:
    out.append('else')
return x, out
---
None
## exception group of asserts
---
try:
    assert x.shape[0] == 4, 'four'
except AssertionError as e:
    $middle
    return x, str(e)
---
None
## exception of torch
---
try:
    torch.ones(2) + torch.ones(3)
except RuntimeError:
    log.append('shape')
    $middle
    return x + 1
return x
---
None
## exception of index
---
try:
    return x[7]
except IndexError:
    $middle
    return x - 1
---
None
## exception types of attributes
---
out = []
for act in (lambda: None.v, lambda: [][0], lambda: {}[0], lambda: int('z'), lambda: 1 / 0, lambda: 'a' + 1):
    try:
        act()
    except Exception as e:
        out.append(type(e).__name__)
    $middle
return x, out
---
None
## exception notes
---
try:
    e = ValueError('v')
    e.add_note('n')
    raise e
except ValueError as caught:
    $middle
    return x, caught.__notes__, caught is e
---
None
"""
)

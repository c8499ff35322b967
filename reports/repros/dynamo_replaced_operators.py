"""A special method of a class is replaced, or added, after the program was compiled: the compiled program goes on with the old one."""

import torch

x = torch.arange(3.0) + 1
PROGRAMS = {
    "__add__": (lambda d: d + 1, lambda d, o: 1, lambda d, o: 5),
    "__radd__": (lambda d: 1 + d, lambda d, o: 1, lambda d, o: 5),
    "__neg__": (lambda d: -d, lambda d: 1, lambda d: 5),
    "__lt__": (lambda d: 2 if d < 3 else 3, lambda d, o: True, lambda d, o: False),
    "__eq__": (lambda d: 2 if d == 3 else 3, None, lambda d, o: True),
    "__bool__": (lambda d: 2 if d else 3, None, lambda d: False),
    "__len__": (lambda d: len(d), lambda d: 2, lambda d: 3),
    "__iter__": (lambda d: sum(d), lambda d: iter([1, 2]), lambda d: iter([10])),
    "__contains__": (lambda d: 2 if 3 in d else 3, lambda d, i: True, lambda d, i: False),
    "__getitem__": (lambda d: d[0], lambda d, i: 1, lambda d, i: 5),
    "__call__": (lambda d: 2 if callable(d) else 3, None, lambda d: 4),
    "__str__": (lambda d: len(str(d)), lambda d: "a", lambda d: "bcd"),
    "__index__": (lambda d: range(7)[d], lambda d: 1, lambda d: 2),
}
wrong = []
for method, (use, before, after) in PROGRAMS.items():
    torch.compiler.reset()
    kind = type("Held", (), {method: before} if before else {})
    held = kind()

    def program(x, held, use=use):
        return x * use(held)

    compiled = torch.compile(program)
    try:
        compiled(x, held)
        setattr(kind, method, after)
        if not torch.equal(compiled(x, held), program(x, held)):
            wrong.append(method)
    except Exception as error:
        wrong.append(f"{method} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: not noticed: {', '.join(wrong)}")

"""The name, module, docstring, annotations and own attributes of a function change after the compile: the program keeps the old ones."""

import torch


def make():
    def given():
        """One."""

    given.own = 1
    return given


def renamed(function):
    function.__name__ = "another_name"


def moved(function):
    function.__module__ = "another_module_of_this_function"


def described(function):
    function.__doc__ = "Something else, and longer."


def marked(function):
    function.own = 7


PROGRAMS = {
    "__name__": (lambda f: len(f.__name__), renamed),
    "__module__": (lambda f: len(f.__module__), moved),
    "__doc__": (lambda f: len(f.__doc__), described),
    "an own attribute": (lambda f: f.own, marked),
}
x, wrong = torch.ones(3), []
for name, (asked, changed) in PROGRAMS.items():
    torch.compiler.reset()
    function = make()

    def program(x, function, asked=asked):
        return x * asked(function)

    compiled = torch.compile(program)
    try:
        compiled(x, function)
        changed(function)
        if not torch.equal(compiled(x, function), program(x, function)):
            wrong.append(name)
    except Exception as error:
        wrong.append(f"{name} ({type(error).__name__})")
if wrong:
    raise SystemExit(f"torch {torch.__version__}: not noticed: {', '.join(wrong)}")

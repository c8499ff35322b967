"""What an object or a module has when it is called a second time is not looked at again. A neighbour of pytorch#189027."""

import os

import torch


class Record:
    def __init__(self):
        self.a = 1


def name_in_attributes(x, record):
    return x * 2 if "b" in record.__dict__ else x + 1


def count_of_attributes(x, record):
    return x * len(record.__dict__)


def count_of_vars(x, record):
    return x * len(vars(record))


def in_environment(x, record):
    return x * 2 if "ZQ_MEMBERS_LATER" in os.environ else x + 1


class Holder(torch.nn.Module):
    def __init__(self, what: str):
        super().__init__()
        self.part, self.what = torch.nn.ReLU(), what

    def forward(self, x):
        return x * (2 + len(list(getattr(self.part, self.what)())))


def changed(thing) -> None:
    if isinstance(thing, Record):
        thing.b = 5
        os.environ["ZQ_MEMBERS_LATER"] = "1"
    else:
        thing.add_module("child", torch.nn.ReLU())
        thing.register_buffer("kept", torch.ones(1))
        thing.register_parameter("learnt", torch.nn.Parameter(torch.ones(1)))


def second(program, thing, *given) -> torch.Tensor:
    os.environ.pop("ZQ_MEMBERS_LATER", None)
    torch._dynamo.reset()
    x = torch.full((2,), 3.0)
    program(x, *given)
    changed(thing)
    return program(x, *given)


found = []
for program in (name_in_attributes, count_of_attributes, count_of_vars, in_environment):
    one, other = Record(), Record()
    if not torch.equal(second(program, one, one), second(torch.compile(program), other, other)):
        found.append(program.__name__)
for what in ("children", "modules", "parameters", "buffers", "named_modules"):
    one, other = Holder(what), Holder(what)
    if not torch.equal(second(one, one.part), second(torch.compile(other), other.part)):
        found.append(what)
if found:
    raise SystemExit(f"torch {torch.__version__}: the second call sees what was there before: {', '.join(found)}")

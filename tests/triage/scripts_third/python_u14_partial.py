"""No report known: keywords of a partial of a partial are those of the outer one alone."""

import functools

import torch


def scale(t, k, b=0):
    return t * k + b


def program(x):
    inner = functools.partial(scale, k=3)
    outer = functools.partial(inner, b=1)
    return x + len(outer.keywords)


def test_keywords():
    want, got = program(torch.ones(1)), torch.compile(program, fullgraph=True)(torch.ones(1))
    assert want.item() == got.item(), f"{want.item()} != {got.item()}"


test_keywords()

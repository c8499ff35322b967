"""Dynamo, torch 2.11: an operator that gives NotImplemented is refused by Python with a TypeError; compiled, its result is NotImplemented itself. The texts of
errors that a generator raises ("generator raised StopIteration") are those of their classes."""

import sys

import torch


class Refuses:
    def __add__(self, other):
        return NotImplemented


def program(x):
    try:
        refused = str(Refuses() + "text")
    except TypeError:
        refused = "refused"

    def stops():
        yield 1
        raise StopIteration

    try:
        list(stops())
    except RuntimeError as error:
        return x + 1, refused, str(error)


x = torch.ones(2)
eager, compiled = program(x)[1:], torch.compile(program)(x)[1:]
if eager != compiled:
    print(f"compiled {compiled}, eager {eager}")
    sys.exit(1)

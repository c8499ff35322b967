"""A generator that the program decorates with no_grad runs with gradients on."""

import torch


def program(x):
    @torch.no_grad()
    def doubled(rows):
        for row in rows:
            yield row * 2

    return [row.requires_grad for row in doubled([x, x + 1])]


x = torch.ones(3, requires_grad=True)
seen, expected = torch.compile(program, backend="eager")(x), program(x)
print(f"wants a gradient: {seen}, eager {expected}")
raise SystemExit(seen != expected)

"""super().size in a property, behind try: Dynamo gives the property object, so that the program takes its other way. Right on 2.11."""

import torch


class Base:
    @property
    def size(self):
        return 5


class Child(Base):
    @property
    def safe(self):
        try:
            return super().size + 1
        except TypeError:
            return -1


x = torch.ones(2)
made = torch.compile(lambda x: x * Child().safe, backend="eager")(x)
if made.tolist() != [6.0, 6.0]:
    raise SystemExit(f"torch {torch.__version__}: {made.tolist()}, eager gives [6.0, 6.0]")

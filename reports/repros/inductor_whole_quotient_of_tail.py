"""A quotient or remainder of whole numbers raises ZeroDivisionError though no divisor is zero: the lanes behind the end of the last vector count.

Exits 1 while the defect shows, 0 otherwise.
"""

import sys

import torch


def refused(function, x, y):
    """Does the compiled program raise where eager does not?"""
    function(x, y)
    torch.compiler.reset()
    try:
        torch.compile(function)(x, y)
    except RuntimeError as error:
        print(f"{function.__name__} of {x.numel()} numbers: {str(error).splitlines()[0][:120]}")
        return True
    return False


def main():
    x = torch.arange(1, 79, dtype=torch.int32)
    y = torch.tensor([3, -3, 7, -7, 1, 2], dtype=torch.int32).repeat(13)
    found = [refused(function, x, y) for function in (torch.floor_divide, torch.remainder, torch.fmod)]
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())

"""pytorch#176565: a cast to half and back is removed; what half cannot hold stays finite."""

import unittest

import torch


class Rounding(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        self.x = torch.tensor([1e6, 3.14159, -7e4])

    def test_values_are_kept(self):
        def f(x):
            return x * 2 + 1

        self.assertTrue(torch.equal(f(self.x), torch.compile(f)(self.x)))  # noqa: PT009

    def test_infinite_after_half(self):
        def f(x):
            return x.half().float().isinf()

        self.assertEqual(f(self.x).tolist(), torch.compile(f)(self.x).tolist())  # noqa: PT009


if __name__ == "__main__":
    unittest.main()

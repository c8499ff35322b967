"""A conformance suite for PyTorch compilers: which stage of which compiler moved."""


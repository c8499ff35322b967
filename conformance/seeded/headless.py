"""Faults of other backends."""

"""Faults that end, stop or flood processes, against the whole suite: `python -m tests.chaos` runs the table, pytest a fast part of it."""

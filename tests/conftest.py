"""Shared by all tests of the engine."""

from __future__ import annotations

import torch

# Tests fork processes, and a process that has started OpenMP's threads cannot be forked: its children would wait for threads that they
# do not have. Processes that compile set their own number.
torch.set_num_threads(1)

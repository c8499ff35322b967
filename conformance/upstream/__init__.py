"""The compilers' own tests, run by stage: `conformance upstream`. docs/upstream.md says how.

Nothing here imports torch: the tests run in another interpreter, beside any torch from 2.6 on. Four files are run
inside that interpreter and are therefore plain Python 3.9 without dependencies: `child.py`, `server.py`, `rungs.py`,
`main_guard.py`. So is `bootstrap.py`, which may import torch and the engine: only suites that need them use it.
"""

"""`python -m conformance.triage.plugged SCRIPT ARGUMENTS…`: a script in a new interpreter, with the plugins of this
run loaded first."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from conformance.plugins import load_plugins

if __name__ == "__main__":
    load_plugins()
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")

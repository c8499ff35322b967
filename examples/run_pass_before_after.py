"""The FX graph around one of AutoDeploy's passes: a thin front of `conformance pass`.

python examples/run_pass_before_after.py --pass fuse_norm
python examples/run_pass_before_after.py --pass fix_functionalization --micrograph norm.decoder_block
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance.cli import main as conformance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--pass", dest="name", default="fuse_norm", help="fuse_norm, fix_functionalization, or any transform"
    )
    options, rest = parser.parse_known_args()
    conformance(["pass", options.name, *rest])


if __name__ == "__main__":
    main()

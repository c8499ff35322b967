"""The options of `conformance sweep`: which environments, which cells, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from conformance.plan import THREADS
from conformance.report.diff import LEVELS

FILE = click.Path(path_type=Path)

WHICH_ENVIRONMENTS = (
    click.option(
        "--torch",
        "versions",
        multiple=True,
        metavar="V",
        help="2.11..2.15, 2.14.1, nightly, nightly-1 (the one before); with commas",
    ),
    click.option(
        "--python", "pythons", multiple=True, metavar="NAME=PATH", help="a Python that has everything already"
    ),
    click.option("--with", "beside", multiple=True, metavar="REQ", help="install this too, e.g. triton==3.8.0"),
    click.option("--index", "indexes", multiple=True, metavar="URL", help="ask this index beside PyPI (nightlies)"),
    click.option("--index-url", default="", metavar="URL", help="ask this index in place of PyPI"),
    click.option("--wheels", default="", metavar="DIR", help="a folder of wheels to install from"),
    click.option("--pre", is_flag=True, help="pre-releases, too"),
    click.option("--trtllm-src", default="", metavar="DIR", help="a TensorRT-LLM checkout for AutoDeploy"),
)
WHICH_CELLS = (
    click.option(
        "-b", "--backend", "backends", multiple=True, metavar="B", help="backends (default: all that are installed)"
    ),
    click.option("-s", "--stage", "stages", multiple=True, metavar="S", help="stages (default: all)"),
    click.option(
        "-t", "--target", "targets", multiple=True, metavar="T", help="cpu, cuda, sm_90 … (default: each backend's own)"
    ),
    click.option(
        "-m",
        "--micrograph",
        "micrographs",
        multiple=True,
        metavar="GLOB",
        help="micrographs, e.g. 'norm.*'; '*': all (default: the core)",
    ),
    click.option("--micrographs", "folder", default="", metavar="DIR", help="a folder of your own micrographs"),
    click.option("--expectations", default="", metavar="DIR", help="a folder of your own expectations"),
    click.option("--no-baseline", is_flag=True, help="do not compare facts with recorded runs of the same version"),
    click.option(
        "--fresh", is_flag=True, help="measure every case, even where nothing changed since it was last measured"
    ),
    click.option(
        "--cell-timeout", "timeout", type=float, default=300.0, metavar="SECONDS", help="for one case (default: 300)"
    ),
    click.option(
        "--memory-limit", "memory", type=float, default=0.0, metavar="GIB", help="for one case (default: none)"
    ),
    click.option(
        "--threads", type=click.IntRange(1), default=THREADS, help=f"threads that compiles see (default: {THREADS})"
    ),
    click.option(
        "--plugin",
        "plugins",
        multiple=True,
        metavar="MODULE",
        help="load this in every worker, before the first compile",
    ),
    click.option(
        "--kind",
        default="cells",
        metavar="KIND",
        help="what is run: cells (default), ops, selftest, fuzz, or MODULE:CLASS",
    ),
    click.option("--dtype", "dtypes", multiple=True, metavar="D", help="ops: float32, int8, … (default: all)"),
    click.option(
        "--form", "forms", multiple=True, metavar="F", help="ops: special, errors, …; `all` (default: layouts)"
    ),
    click.option(
        "--samples", type=click.IntRange(1, 24), default=3, help="ops: samples of an operator in a dtype (default: 3)"
    ),
    click.option(
        "--sessions", type=click.IntRange(1), default=4, help="fuzz: so many sessions, each with its seed (default: 4)"
    ),
    click.option("--minutes", type=float, default=5.0, help="fuzz: how long a session takes (default: 5)"),
    click.option("--database", default="", metavar="FOLDER|URL", help="fuzz: the failing examples of all sessions"),
)
HOW = (
    click.option(
        "-o",
        "--output",
        type=FILE,
        default=Path("records"),
        show_default=True,
        help="the folder of the records and of what is made of them",
    ),
    click.option("--resume", is_flag=True, help="go on with the records in that folder"),
    click.option("-n", "--workers", type=click.IntRange(1), help="slots on this machine (default: one a core)"),
    click.option("--ray", "address", metavar="auto|ADDRESS", help="run on this Ray cluster"),
    click.option(
        "--installed", is_flag=True, help="Ray: use the suite that is installed on the nodes; do not send this one"
    ),
    click.option(
        "--slots-per-node", type=click.IntRange(1), help="Ray: at most so many slots on a node (default: one a CPU)"
    ),
    click.option("--dry-run", is_flag=True, help="print the plan and an estimate, and stop"),
    click.option(
        "--fail-on",
        type=click.Choice(LEVELS),
        help="exit with 1 for what moved between neighbours, of this class or worse, and for nothing else",
    ),
    click.option("--allow-unavailable", is_flag=True, help="do not mind a backend of which nothing could be observed"),
)


def options(command: Any) -> Any:
    """All of them, on a command."""
    for option in reversed([*WHICH_ENVIRONMENTS, *WHICH_CELLS, *HOW]):
        command = option(command)
    return command

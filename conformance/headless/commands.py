"""`conformance fidelity`: kernels of a real GPU's machine against those made here without one."""

from __future__ import annotations

import click


@click.command("fidelity", context_settings={"ignore_unknown_options": True})
@click.argument("action", type=click.Choice(["record", "compare"]))
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
def fidelity(action: str, rest: tuple[str, ...]) -> int:
    """record FILE on a machine with a GPU; compare FILE anywhere, kernel by kernel."""
    from conformance.headless.fidelity import main

    return main([action, *rest])


COMMANDS = [fidelity]

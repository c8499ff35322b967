"""The command line. Each command lives beside what it drives; this file only gathers them and speaks plainly of mistakes."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from conformance.errors import UsageError, unknown

# Where each command is defined; imported when it is asked for, since torch takes seconds to import.
COMMANDS = {
    "doctor": "conformance.commands.doctor",
    "list": "conformance.commands.listing",
    "run": "conformance.commands.run",
    "show": "conformance.commands.show",
    "bench": "conformance.commands.bench",
    "matrix": "conformance.report.commands",
    "diff": "conformance.report.commands",
    "history": "conformance.report.commands",
    "pass": "conformance.autodeploy.commands",
    "candidates": "conformance.autodeploy.commands",
    "get": "conformance.autodeploy.commands",
    "triage": "conformance.triage.command",
    "bisect": "conformance.triage.bisect_command",
    "selftest": "conformance.triage.commands",
    "expect": "conformance.triage.commands",
    "fuzz": "conformance.fuzz.commands",
    "pin": "conformance.fuzz.commands",
    "fidelity": "conformance.headless.commands",
}


class Gathered(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            raise unknown("command", name, COMMANDS)
        module = import_module(COMMANDS[name])
        return next((command for command in module.COMMANDS if command.name == name), None)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in COMMANDS:
            try:
                command = self.get_command(ctx, name)
            except ImportError:
                command = None
            if command is not None:
                rows.append((name, command.get_short_help_str(90)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.command(cls=Gathered, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="torch-compiler-conformance")
def group() -> None:
    """Which stage of which PyTorch compiler moved."""


def main(argv: list[str] | None = None) -> Any:
    try:
        code = group.main(argv, standalone_mode=False)
    except UsageError as error:
        _complain(str(error))
    except click.ClickException as error:
        _complain(error.format_message())
    except click.exceptions.Abort:
        _complain("stopped")
    except BrokenPipeError:
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    print(f"conformance: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()

"""The command line: which module has which command. A module is imported when its command is used, since torch takes
seconds."""

from __future__ import annotations

import errno
import sys
from importlib import import_module
from typing import Any

import click

from conformance import sanitize
from conformance.errors import UsageError, unknown

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# Each command, where it is, and what `--help` says of it without importing it.
COMMANDS = {
    "doctor": (
        "conformance.commands.doctor",
        "What can be observed here, per backend, target and stage, and why not the rest.",
    ),
    "list": ("conformance.commands.listing", "Micrographs with their contracts; checks; cells."),
    "run": ("conformance.commands.run", "Run the suite; print the matrix."),
    "sweep": (
        "conformance.sweep.command",
        "Run the suite in many environments, here or on a Ray cluster: records, matrix, diffs, history.",
    ),
    "show": ("conformance.commands.show", "Graph, code, guards and counters of one cell."),
    "bench": ("conformance.commands.bench", "Time the suite on its own overhead."),
    "matrix": (
        "conformance.report.commands",
        "The compatibility matrix of one or more records: a page, Markdown, JSON, JUnit.",
    ),
    "diff": ("conformance.report.commands", "Which stage moved between two records: ranked by cost, one line a cause."),
    "history": ("conformance.report.commands", "With which version each cause came, over many records."),
    "pack": ("conformance.report.commands", "The long texts of records as one file each, to be published."),
    "pass": (
        "conformance.passes.commands",
        "A pass of your own in the real compile: matches, and the stage that took one away.",
    ),
    "candidates": ("conformance.autodeploy.commands", "Fusion candidates in a folder of AutoDeploy graph dumps."),
    "get": ("conformance.autodeploy.commands", "Get the sources that a backend needs."),
    "triage": ("conformance.triage.command", "The stage, the culprit, a minimal repro and the issue text."),
    "bisect": ("conformance.triage.bisect_command", "The version that broke a script or a cell."),
    "selftest": ("conformance.triage.commands", "The suite against seeded faults."),
    "reverts": (
        "conformance.reverts.commands",
        "Real fixes of PyTorch taken out of the installed torch: does the library show the bug?",
    ),
    "mutants": ("conformance.mutants.commands", "The library against random changes of a compiler's own source."),
    "expect": ("conformance.triage.commands", "Write an expectation for a known defect."),
    "judge": ("conformance.triage.commands", "Judge records by the checks and expectations of now; nothing is run."),
    "fuzz": ("conformance.fuzz.commands", "Search for new defects: shapes, strides, guards, graphs."),
    "pin": ("conformance.fuzz.commands", "Keep a finding of the fuzzer as an example."),
    "ops": ("conformance.ops.commands", "Every operator: what is compiled, what falls back, what is wrong."),
    "fidelity": ("conformance.headless.commands", "Compare kernels made without a GPU with a real GPU's."),
    "upstream": ("conformance.upstream.commands", "Run a compiler's own tests from a checkout, by stage."),
}


class Lazy(click.Group):
    """Commands by their names, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            raise unknown("command", name, COMMANDS)
        import_module("conformance.bytecode").keep()  # before a command imports torch
        module = import_module(COMMANDS[name][0])
        return next((command for command in module.COMMANDS if command.name == name), None)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        items = [click.shell_completion.CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items()]
        return [item for item in items if item.value.startswith(incomplete)] or click.Command.shell_complete(
            self, ctx, incomplete
        )


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib import metadata

        try:
            click.echo(f"conformance {metadata.version('torch-compiler-conformance')}")
        except metadata.PackageNotFoundError:
            click.echo("conformance, from a checkout")
        ctx.exit()


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
def group() -> None:
    """Which stage of which PyTorch compiler moved."""


def main(argv: list[str] | None = None) -> Any:
    code = None
    try:
        code = group.main(argv, standalone_mode=False)
    except UsageError as error:
        _complain(str(error))
    except click.ClickException as error:
        _complain(error.format_message())
    except click.exceptions.Abort:
        _complain("stopped")
    except BrokenPipeError:
        sys.stderr.close()  # whoever read this has enough; Python would complain at exit
    except OSError as error:
        if error.errno not in FULL:
            raise
        _complain(f"cannot write {error.filename or 'a file'}: {error.strerror}; make room and run again")
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    """A mistake in one line, whatever a file name or a record put into it."""
    line = sanitize.line(text)
    encoding = sys.stderr.encoding or "utf-8"
    print(f"conformance: {line.encode(encoding, 'backslashreplace').decode(encoding)}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()

"""The command line as a person meets it: quick help, no torch where records are read, every option explained."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from conformance import cli
from conformance.report.style import counted
from tests.support.samples import Write, compile_of

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # an import of it fails
from conformance import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as ended:
    print("code", ended.code)
    ours = {name for name in sys.modules if name.startswith("conformance.")}
    print("imported", *sorted(ours | {name.split(".")[0] for name in sys.modules}))
"""


def without_torch(*args: object) -> str:
    code = [sys.executable, "-c", WITHOUT_TORCH, *map(str, args)]
    done = subprocess.run(
        code, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONIOENCODING": "utf-8"}
    )
    assert not done.stderr, done.stderr
    return done.stdout


def test_help_imports_nothing_that_takes_time() -> None:
    """Measured alone on 2 cores: 0.27 s of processor time; 7.5 s when every command was imported for it."""
    out = without_torch("--help")
    assert all(name in out for name in cli.COMMANDS) and "code 0" in out
    imported = {*out.rsplit("imported ", 1)[1].split()}
    assert not imported & {"rich", "jinja2", "msgspec", "numpy", "pytest", "hypothesis", "packaging"}
    assert {name for name in imported if name.startswith("conformance.")} <= {
        "conformance.cli",
        "conformance.errors",
        "conformance.sanitize",
    }


def test_help_of_the_commands_needs_no_torch() -> None:
    """`conformance run --help` took 5 s of processor time while torch was imported for it. fidelity is in a package that needs torch."""
    code = 'import sys; sys.modules["torch"] = None\nfrom conformance import cli\nfor name in sys.argv[1:]:\n' + (
        "    cli.group.main([name, '--help'], standalone_mode=False)"
    )
    names = [name for name in cli.COMMANDS if name != "fidelity"]
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: ") == len(names)


@pytest.fixture
def pair(write: Write) -> list[Path]:
    versions = {"2.11.0": 1, "2.15.0": 2}
    return [
        write(f"{v}.jsonl", compile_of("norm.a", "inductor", "cpu", fusion={"kernels": n}), torch=v)
        for v, n in versions.items()
    ]


def test_records_are_read_without_torch(pair: list[Path], tmp_path: Path) -> None:
    assert "kernels 2" in without_torch("show", "fusion/inductor/cpu/norm.a", "--record", pair[1])
    assert "7 of 7" in without_torch("matrix", *pair)
    assert "kernels 1 → 2" in without_torch("diff", *pair)
    assert "2.15.0" in without_torch("history", *pair)
    assert "wrote" in without_torch("matrix", *pair, "-o", tmp_path / "m.html")


def commands() -> list[tuple[str, click.Command]]:
    found = []
    for name in cli.COMMANDS:
        command = cli.group.get_command(click.Context(cli.group), name)
        assert command is not None and command.name == name
        found += [(name, command)]
        if isinstance(command, click.Group):
            found += [(f"{name} {inner}", one) for inner, one in command.commands.items()]
    return found


def test_every_command_and_option_has_help() -> None:
    silent = [name for name, command in commands() if not command.help]
    for name, command in commands():
        options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
        silent += [f"{name} {option.opts[0]}" for option in options if not option.help]
    assert silent == []


def test_names_are_whole_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    with pytest.raises(SystemExit):
        cli.main(["list", "-m", "*.*_*"])
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines[1:-1] if line and not line.startswith(" ")]
    assert len(names) > 20 and all("…" not in name and "." in name for name in names)


def test_completion_knows_the_commands() -> None:
    complete = ShellComplete(cli.group, {}, "conformance", "_CONFORMANCE_COMPLETE")
    assert [item.value for item in complete.get_completions([], "di")] == ["diff"]
    assert "--fail-on" in [item.value for item in complete.get_completions(["diff"], "--f")]


def test_one_is_not_many() -> None:
    assert [counted(n, "cell") for n in (0, 1, 2, 1000)] == ["0 cells", "1 cell", "2 cells", "1,000 cells"]

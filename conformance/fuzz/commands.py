"""`conformance fuzz` and `conformance pin`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from conformance.command_options import micrograph_globs
from conformance.errors import UsageError, unknown


@click.command("fuzz")
@click.option("-b", "--backend", default="inductor", show_default=True, metavar="B", help="the compiler to fuzz")
@click.option("-t", "--target", metavar="T", help="cpu, cuda, sm_90 … (default: the backend's own)")
@micrograph_globs(
    "e.g. 'norm.*'; `generated`: made-up graphs; `programs`, 'programs.writes': programs of grammars (default: all)"
)
@click.option("--micrographs", "folder", metavar="DIR", help="your own micrographs")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="how long (default: as the profile says)")
@click.option(
    "--profile",
    type=click.Choice(["ci", "nightly", "deep"]),
    default="nightly",
    show_default=True,
    help="how much is tried: ci the least, deep the most",
)
@click.option("--database", metavar="FOLDER|URL", help="failing examples: a folder, or redis://HOST:PORT")
@click.option("--graphs/--no-graphs", default=None, help="also fuzz generated graphs (default: when no -m is given)")
@click.option(
    "--programs/--no-programs", default=None, help="also programs of the grammars (default: when no -m is given)"
)
@click.option("--coverage", is_flag=True, help="show at the end what was reached at each stage, and what was not")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="processes that play programs beside this one (default: as many as there are processors to use)",
)
@click.option("--guards/--no-guards", default=True, help="also play sequences of calls against the model of guards")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="begin with other draws and graphs than the first",
)
@click.option(
    "--patience", type=click.FloatRange(min=0, min_open=True), metavar="S", help="seconds until a call counts as hung"
)
@click.option(
    "--plugin", multiple=True, metavar="MODULE", help="load this module first, here and where findings are confirmed"
)
@click.option("--json", "as_json", is_flag=True, help="print a summary as JSON at the end")
@click.option("--alone", is_flag=True, hidden=True, help="in this very process, with nobody to go on after it")
@click.pass_context
def fuzz(
    context: click.Context,
    backend: str,
    target: str | None,
    globs: tuple[str, ...],
    folder: str | None,
    minutes: float | None,
    profile: str,
    database: str | None,
    graphs: bool | None,
    programs: bool | None,
    coverage: bool,
    workers: int | None,
    guards: bool,
    seed: int,
    patience: float | None,
    plugin: tuple[str, ...],
    as_json: bool,
    alone: bool,
) -> int:
    """Look for the shape, stride, dtype or sequence of calls where a compiler is wrong."""
    if not alone:
        return supervised(written_out(context))
    os.environ.setdefault(
        "TORCHINDUCTOR_COMPILE_THREADS", "1"
    )  # one small kernel at a time: a pool of processes costs more
    from conformance import backends, plugins
    from conformance.fuzz.database import open_database
    from conformance.fuzz.search import PROFILES
    from conformance.fuzz.session import GRAPHS, PROGRAMS, Session, chosen
    from conformance.fuzz.watchdog import PATIENCE
    from conformance.plugins import load_plugins
    from conformance.target import Target

    load_plugins(plugin)
    plugins.announce(plugin)
    found = backends.get(backend)
    where = Target.parse(target or found.default_target)
    if where.name not in found.targets():
        raise UsageError(f"{backend} makes code for {', '.join(found.targets())}, not for {where}")
    reasons = found.unavailable(where)
    if len(reasons) == 7:
        raise UsageError(f"{backend} cannot be fuzzed here for {where}: {next(iter(reasons.values()))}")
    from conformance.library import load

    library = {name: micrograph for name, micrograph in load(folder).items() if found.takes(micrograph)}
    native = found.name == "inductor" and where.name == "cpu"
    grammars = _grammars(globs, programs, "" if native else found.name, where.name != "cuda")
    named = [glob for glob in globs if glob != GRAPHS and not glob.startswith(PROGRAMS)]
    for glob in named:
        if not chosen(library, [glob]):
            raise unknown("micrograph", glob, [*library, GRAPHS, PROGRAMS])
    names = chosen(library, named) if named or not globs else []
    quiet()
    session = Session(
        found,
        where,
        {name: library[name] for name in names},
        PROFILES[profile],
        open_database(database),
        minutes or PROFILES[profile].minutes,
        graphs=(not globs or GRAPHS in globs) if graphs is None else graphs,
        guards=guards,
        seed=seed,
        patience=patience or PATIENCE,
        grammars=grammars,
    )
    if workers:
        session.lane.workers.count = workers
    _watched(session)
    return _ended(session, as_json, coverage)


def _grammars(globs: tuple[str, ...], asked: bool | None, exporter: str, possible: bool) -> tuple[str, ...]:
    """The grammars that `-m programs.GLOB` names, or all of them where programs are asked for and can be played. A backend
    that exports gets those that are one function of tensors which eager takes, and those that are written for it."""
    from conformance.fuzz.grammars import GRAMMARS
    from conformance.fuzz.session import PROGRAMS, chosen

    own = [glob for glob in globs if glob.startswith(PROGRAMS)]
    if (own or asked) and not possible:
        raise UsageError(
            "programs of the grammars are played in forked processes, which have no GPU: use another target"
        )
    if not possible or asked is False or not (own or asked or not globs):
        return ()
    patterns = [glob.removeprefix(PROGRAMS).removeprefix(".") or "*" for glob in own]
    named = any(glob not in (PROGRAMS, f"{PROGRAMS}.*") for glob in own)
    fitting = [
        name
        for name, rules in GRAMMARS.items()
        if (rules.exportable or not exporter) and (named or not rules.backends or exporter in rules.backends)
    ]
    found = tuple(chosen(fitting, patterns))
    if not found:
        raise unknown("grammar", own[0], [f"{PROGRAMS}.{name}" for name in GRAMMARS])
    return found


def written_out(context: click.Context) -> list[str]:
    """The command as it was given."""
    words = []
    for option in context.command.params:
        value = context.params.get(option.name or "")
        given = context.get_parameter_source(option.name or "") is not click.core.ParameterSource.DEFAULT
        if not given or not isinstance(option, click.Option):
            continue
        if option.is_flag:
            words.append(option.opts[0] if value else option.secondary_opts[0])
        else:
            words += [word for one in (value if option.multiple else [value]) for word in (option.opts[-1], str(one))]  # type: ignore[union-attr]
    return words


def supervised(words: list[str], most: int = 20) -> int:
    """The session in a process of its own: where it dies, or hangs so that only its end helps, another goes on."""
    from conformance.fuzz.home import home
    from conformance.fuzz.watchdog import LOST, SUPERVISED

    env = {**os.environ, SUPERVISED: os.urandom(8).hex()}
    for _ in range(most):
        child = subprocess.Popen([sys.executable, "-m", "conformance.cli", "fuzz", *words, "--alone"], env=env)
        while True:
            try:
                code = child.wait()
                break
            except KeyboardInterrupt:  # it was told as well, and is about to end
                continue
        if not any(home().glob(f"*-{child.pid}.current")):
            return (
                code
                if code >= 0
                else _complained(f"the session's process died with signal {-code} before its first example")
            )
        how = (
            f"with signal {-code}"
            if code < 0
            else "since it lost its GPU"
            if code == LOST
            else "without an end to its example"
        )
        Console(stderr=True).print(
            f"the session's process ended {how}; another goes on", style="yellow", highlight=False
        )
    return _complained(f"the session's process died {most} times")


def _complained(text: str) -> int:
    raise UsageError(text)


def quiet() -> None:
    """Recompiles and odd values are what a fuzzer is for: compilers need not warn of them."""
    import logging
    import warnings

    from conformance.backends.inductor.seam import LOGS, REFUSAL_LOGS

    warnings.filterwarnings("ignore")
    for name in LOGS:
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in REFUSAL_LOGS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _console() -> Console:
    """What is said of programs is their text: brackets in it are no markup, and lines are as long as they are."""
    return Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


def _watched(session: Any) -> None:
    console = _console()
    last = time.monotonic()
    told = programs_told = 0
    with Live(_progress(session, ""), console=console, auto_refresh=False, transient=True) as live:

        def tell(name: str, what: str) -> None:
            nonlocal last, told, programs_told
            for program in session.lane.new[programs_told:]:
                console.print(f"found {program.id}: {program}")
            programs_told = len(session.lane.new)
            for finding in session.new[told:]:
                console.print(f"found {finding.id}: {finding}")
            told = len(session.new)
            now = time.monotonic()
            if console.is_terminal and (what or now - last > 0.5):
                live.update(_progress(session, f"{name} {what}"), refresh=True)
                last = now
            elif not console.is_terminal and now - last > 30:
                last = now
                console.print(_line(session, name), style="dim")

        session.tell = tell
        try:
            session.run()
        except KeyboardInterrupt:
            console.print("stopped; run again to go on from here", style="dim")


def _line(session: Any, name: str) -> str:
    from conformance.fuzz.session import summary

    said = summary(session)
    return (
        f"{said['seconds']:.0f} s: {said['examples']} examples ({said['examples_per_minute']:.0f}/min), {said['compiles']} compiles, "
        f"{said['guards']} guards, {said['kernels']} kernels, {said['findings']} findings; "
        f"{said['programs'].get('drawn', 0)} programs, {said['programs']['causes']} causes, {name}"
    )


def _progress(session: Any, name: str) -> Table:
    from conformance.fuzz.session import summary

    said = summary(session)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row(
        "examples",
        str(said["examples"]),
        f"{said['examples_per_minute'] / 60:.1f}/s, {said['rejected']} rejected by eager",
    )
    table.add_row("compiles", str(said["compiles"]), f"{said['examples'] / max(said['compiles'], 1):.1f} examples each")
    table.add_row("seen", f"{said['guards']} guards", f"{said['kernels']} programs")
    programs = said["programs"]
    table.add_row(
        "programs", str(programs.get("drawn", 0)), f"{programs['causes']} causes, {programs['reports']} reports"
    )
    table.add_row("findings", str(said["findings"]), f"{said['unconfirmed']} not reproduced in a fresh process")
    left = max(60 * session.minutes - said["seconds"], 0)
    table.add_row("now", f"{left / 60:.1f} min left", name)
    return table


def _ended(session: Any, as_json: bool, coverage: bool = False) -> int:
    from conformance.fuzz import program_report
    from conformance.fuzz.repro import write_repro
    from conformance.fuzz.session import summary

    console = _console()
    program_report.tell(session.lane, console, coverage)
    for finding in session.new:
        file = write_repro(finding)
        console.print(f"\n{finding.id} {finding}", style="bold")
        console.print(f"  repro: python {file}\n  keep:  conformance pin {finding.id}")
    for finding in session.unconfirmed:
        console.print(f"not reproduced in a fresh process: {finding}", style="yellow")
    for reason, times in session.register.met.most_common():
        console.print(f"known, met {times} times: {reason}", style="dim")
    for problem in [*session.problems, *session.findings.problems]:
        console.print(problem, style="yellow")
    about = f"seed {session.seed}, {len(session.micrographs)} micrographs"
    console.print(_line(session, about), style="dim")
    if as_json:
        click.echo(json.dumps(summary(session)))
    return 1 if session.new or session.lane.new else 0


@click.command("pin")
@click.argument("finding")
@click.option("--list", "listed", is_flag=True, hidden=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="where examples are kept (default: fixtures/examples)"
)
def pin(finding: str, listed: bool, output: Path | None) -> int:
    """Make a finding an example of the deterministic suite, for every backend and stage."""
    from conformance.fuzz.finding import Findings
    from conformance.fuzz.pinned import write, write_program
    from conformance.fuzz.program_finding import ProgramFindings

    programs = ProgramFindings().known()
    file = write_program(programs[finding], output) if finding in programs else write(Findings()[finding], output)
    click.echo(f"{file}: `conformance run -m 'pinned.*'` runs it from now on")
    return 0


COMMANDS = [fuzz, pin]

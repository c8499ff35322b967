"""`conformance pass`: a pass of the user's own in the real compile; a transform of AutoDeploy's by its name."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from conformance.errors import UsageError

MANY = 20  # micrographs, of which the user is told
Earlier = dict[tuple[str, str], Any]  # pass, micrograph → examination
PER_MICROGRAPH = 900.0  # seconds for one micrograph in a process of its own


@click.command("pass")
@click.argument("subjects", metavar="FILE.py:OBJECT | NAME", nargs=-1, required=True)
@click.option(
    "--backend", "-b", metavar="B", help="inductor, autodeploy or torch_tensorrt (default: the one that the file names)"
)
@click.option(
    "--micrograph", "-m", metavar="GLOB", multiple=True, help="which micrographs (default: those the file names)"
)
@click.option("--micrographs", metavar="DIR", type=click.Path(exists=True, path_type=Path), help="a folder of your own")
@click.option("--target", "-t", metavar="T", default="cpu", show_default=True, help="cpu, or a described GPU: sm_90")
@click.option(
    "--hook", metavar="HOOK", help="where it runs: pre_grad, joint_pre, joint_post, post_grad_pre, post_grad_post"
)
@click.option("--quick", is_flag=True, help="matches and reasons alone: no variants, no neighbours")
@click.option("--build", is_flag=True, help="build the code and run it, too (needs a C++ compiler)")
@click.option(
    "--limit",
    metavar="S",
    type=float,
    default=20.0,
    show_default=True,
    help="seconds that the pass may take on a graph",
)
@click.option("--plugin", metavar="MODULE", multiple=True, help="a plugin that patches the compiler, loaded first")
@click.option("--torch", "versions", metavar="RANGE", help="by these versions of torch: 2.11..2.15, 2.14.1")
@click.option(
    "--python", "places", metavar="PATH", multiple=True, help="an interpreter, an environment or a folder of them"
)
@click.option(
    "--against", metavar="FILE", type=click.Path(path_type=Path), help="what --json wrote: say what changed since"
)
@click.option(
    "--pin", metavar="FILE", type=click.Path(path_type=Path), help="write a pytest file with these exact counts"
)
@click.option(
    "--kernels",
    metavar="OPTION",
    default="flashinfer",
    show_default=True,
    help="AutoDeploy: flashinfer, triton or torch",
)
@click.option(
    "--legacy",
    is_flag=True,
    help="AutoDeploy: the older pass under _torch/compilation, even where there is a newer one",
)
@click.option("--review", is_flag=True, help="AutoDeploy: is it registered, listed and tested?")
@click.option("--json", "as_json", is_flag=True, help="for programs")
@click.option("--trtllm-src", metavar="DIR", help="a TensorRT-LLM checkout (or TRTLLM_SRC)")
def pass_command(subjects: tuple[str, ...], **options: Any) -> int:
    """A pass of your own on micrographs: matches, graph before and after, what it does wrong, and why it did not match.

    NAME is one of AutoDeploy's own transforms: fuse_add_rms_norm, fuse_norm, fix_functionalization …"""
    for subject in subjects:
        if subject.endswith(".py"):
            raise UsageError(f"which object of {subject}? write {subject}:OBJECT")
    own = [subject for subject in subjects if ":" in subject]
    if not own:
        return _by_name(subjects, options)
    if len(own) != len(subjects):
        raise UsageError("either files of your own (FILE.py:OBJECT) or a transform's name, not both")
    from conformance.backends.autodeploy.loader import VARIABLE
    from conformance.plugins import load_plugins

    if options["trtllm_src"]:
        os.environ[VARIABLE] = options["trtllm_src"]
    if options["versions"]:
        return _by_version(subjects, options)
    if options["plugin"]:
        load_plugins(options["plugin"])
    return _examine(subjects, options)


def _by_name(names: Sequence[str], options: dict[str, Any]) -> int:
    """AutoDeploy's own transforms, by their names."""
    from conformance.autodeploy.commands import show_transform

    if len(names) > 1:
        raise UsageError(f"one transform at a time, or files of your own: {', '.join(names)}")
    globs = options["micrograph"]
    return show_transform(
        names[0],
        globs[0] if globs else "norm.decoder_block",
        options["kernels"],
        options["legacy"],
        options["review"],
        options["as_json"],
        options["trtllm_src"],
    )


# ------------------------------------------------------------------------------------------------ examining


def _examine(addresses: Sequence[str], options: dict[str, Any]) -> int:
    from conformance.passes.compilers import compiler_of
    from conformance.passes.selection import chosen, folders_of

    console = Console(highlight=False, soft_wrap=True, stderr=options["as_json"])
    earlier = _earlier(options["against"])
    results: dict[str, list[Any]] = {}
    for address in addresses:
        compiler = compiler_of(address, options)
        own = options["micrographs"]
        library = chosen(options["micrograph"], compiler.micrographs, folders_of(address, own), own is not None)
        if len(library) > MANY and not options["as_json"]:
            click.echo(f"{len(library)} micrographs; -m GLOB chooses some", err=True)
        compiler.prepare()
        results[address] = []
        for name, cls in library.items():
            made = in_process(lambda cls=cls, compiler=compiler: compiler.examine(cls).to_json(), compiler, name)
            results[address].append(made)
            if not options["as_json"]:
                _show(console, made, compiler, len(library))
        if not options["as_json"] and len(library) > 1:
            from conformance.passes.report import table

            table(console, results[address])
        if not options["as_json"] and compiler.ran and any(made.total for made in results[address]):
            console.print(compiler.ran)
    return _finish(console, results, earlier, options)


def in_process(examine: Any, compiler: Any, micrograph: str) -> Any:
    """The examination in a process of its own: what a pass does to its process, or a crash of it, ends there."""
    from conformance.passes.examination import Examination
    from conformance.passes.soundness import Finding
    from conformance.processes import Job, Pool

    answer, death = None, None
    for event in Pool(1, PER_MICROGRAPH).run([Job(micrograph, lambda say: say(json.dumps(examine())))]):
        answer = event.said if event.said is not None else answer
        death = event.death or death
    if answer is not None:
        return Examination.from_json(json.loads(answer))
    made = Examination(compiler.name, micrograph, compiler.target, compiler.version())
    kind = "timeout" if death is not None and death.timeout else "crash"
    said = [line for line in (death.output.splitlines() if death else []) if line.strip()]
    made.findings = [
        Finding(kind, f"{death.reason if death else 'it said nothing'}{f': {said[-1][:200]}' if said else ''}")
    ]
    return made


def _show(console: Console, made: Any, compiler: Any, several: int) -> None:
    from conformance.passes.report import show

    if several > 8 and not made.total and not made.findings and not (made.loss or _near(made)):
        return
    show(console, made, compiler.place, diff=several <= 3)


def _near(made: Any) -> bool:
    """Is the graph nearly the pattern?"""
    return any(miss.matched * 2 >= miss.calls for miss in made.misses)


def _finish(console: Console, results: dict[str, list[Any]], earlier: Earlier, options: dict[str, Any]) -> int:
    if options["as_json"]:
        click.echo(json.dumps({"passes": {a: [e.to_json() for e in found] for a, found in results.items()}}))
    if options["pin"]:
        from conformance.passes.pin import write

        click.echo(f"wrote {write(options['pin'], results, options)}", err=True)
    changed = _since(console, results, earlier)
    return 1 if changed or any(made.serious() for found in results.values() for made in found) else 0


def _earlier(file: Path | None) -> Earlier:
    """The examinations of an earlier run, by pass and micrograph."""
    if file is None:
        return {}
    from conformance.passes.versions import read

    return {(e.name, e.micrograph): e for found in read(file).values() for e in found}


def _since(console: Console, results: dict[str, list[Any]], earlier: Earlier) -> int:
    """What changed since an earlier run; how many counts did."""
    from conformance.passes.compare import change
    from conformance.passes.report import show_change

    changes = 0
    for made in (made for found in results.values() for made in found):
        old = earlier.get((made.name, made.micrograph))
        moved = change(old, made) if old is not None else None
        if moved is not None:
            changes += 1
            show_change(console, moved)
    return changes


def _by_version(addresses: Sequence[str], options: dict[str, Any]) -> int:
    from conformance import torch_versions
    from conformance.passes import environments, report, versions

    for option in (each for each in ("pin", "against", "build") if options[each]):
        raise UsageError(f"--{option} is for one version of torch: leave --torch out, or leave --{option} out")
    console = Console(highlight=False, soft_wrap=True)
    wanted = torch_versions.versions(options["versions"])
    known = environments.installed([*options["places"], *environments.default_places()])
    arguments = [word for glob in options["micrograph"] for word in ("-m", glob)]
    for flag in ("backend", "target", "hook", "trtllm_src", "micrographs", "limit", "kernels"):
        if options[flag]:
            arguments += [f"--{flag.replace('_', '-')}", str(options[flag])]
    arguments += [word for name in options["plugin"] for word in ("--plugin", name)]
    say = (lambda _: None) if options["as_json"] else lambda line: click.echo(line, err=True)
    found = versions.histories(addresses, wanted, known, arguments, say)
    if options["as_json"]:
        said = {h.name: {v: [e.to_json() for e in m.values()] for v, m in h.examined.items()} for h in found}
        click.echo(json.dumps({"versions": said, "failed": {h.name: h.failed for h in found}}))
    else:
        for history in found:
            report.show_history(console, history)
    return 1 if any(history.changes() or history.failed for history in found) else 0


COMMANDS = [pass_command]

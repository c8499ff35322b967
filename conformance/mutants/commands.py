"""`conformance mutants`: how much of a compiler's own source does the library watch?"""

from __future__ import annotations

import difflib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import click
from rich.table import Table

from conformance.command_options import micrograph_globs
from conformance.errors import UsageError
from conformance.report.document import console

_target = click.option("-t", "--target", default="cpu", show_default=True, help="the target that code is made for")
_workers = click.option(
    "-n", "workers", type=click.IntRange(1), default=1, metavar="N", help="this many worker processes"
)
_survey = click.option(
    "--survey", "surveyed", type=click.Path(path_type=Path), required=True, help="the file that `mutants survey` wrote"
)
BACKEND = "inductor"


@click.group("mutants")
def mutants() -> None:
    """Change one place of the compiler's installed source at a time, at random; see whether the library notices."""


@mutants.command("survey")
@micrograph_globs("only these micrographs (without: the core)")
@_target
@_workers
@click.option(
    "-o", "output", type=click.Path(path_type=Path), required=True, help="the file; what it has already is left out"
)
def survey(globs: tuple[str, ...], target: str, workers: int, output: Path) -> int:
    """Which blocks of the compiler's source each micrograph reaches."""
    from conformance import core, library
    from conformance.mutants import survey as surveys

    found = library.load(globs=globs or ("*",))
    names = [name for name in found if any(fnmatchcase(name, glob) for glob in globs)] if globs else core.of(found)
    names = [name for name in names if BACKEND in (found[name].backends or (BACKEND,))]
    known = surveys.Survey(output)
    left = [name for name in names if f"{BACKEND}/{target}/{name}" not in known.known]
    progress = console(stderr=True)
    for number, one in enumerate(surveys.survey(left, BACKEND, target, workers), 1):
        if isinstance(one, str):
            progress.print(f"{number}/{len(left)} {one}", style="dim", markup=False)
            continue
        known.keep(one)
        said = f"{len(one.reached)} of {one.blocks} blocks, {one.seconds:.0f} s"
        progress.print(f"{number}/{len(left)} {one.micrograph}: {said}", style="dim", markup=False)
    return 0


@mutants.command("run")
@_survey
@click.option("--only", multiple=True, metavar="GLOB", help="only mutants whose name, stage or function matches")
@click.option(
    "--count", type=click.IntRange(0), default=100, show_default=True, help="so many, equally many of each stage"
)
@click.option("--seed", type=int, default=1, show_default=True, help="which ones")
@click.option(
    "--most", type=click.IntRange(1), default=12, show_default=True, help="micrographs that are asked for one mutant"
)
@click.option("--controls", type=click.IntRange(0), default=0, help="so many trials in which nothing is changed, too")
@_target
@_workers
@click.option(
    "-o", "output", type=click.Path(path_type=Path), help="keep every answer here; what it has already is left out"
)
def run(
    surveyed: Path,
    only: tuple[str, ...],
    count: int,
    seed: int,
    most: int,
    controls: int,
    target: str,
    workers: int,
    output: Path | None,
) -> int:
    """Draw mutants of what the micrographs reach, and ask these micrographs."""
    from conformance.mutants import operators, score, trial
    from conformance.mutants import survey as surveys

    known = surveys.Survey(_there(surveyed)).all(BACKEND, target)

    def chosen(site: operators.Site) -> bool:
        words = (site.name, site.stage.value, site.function)
        return not only or any(fnmatchcase(word, glob) for glob in only for word in words)

    trials = trial.drawn(known, count, seed, chosen, most) + trial.controls(known, controls, seed, most)
    if not trials:
        raise UsageError(f"no micrograph of {surveyed} reaches such a mutant")
    answers = trial.Answers(output)
    left = [one for one in trials if one.mutant not in answers.known]
    progress = console(stderr=True)
    for number, answer in enumerate(trial.run(left, known, BACKEND, target, workers), 1):
        answers.keep(answer)
        said = f"{answer.found or 'nothing'} {answer.kind} {answer.micrograph}, {answer.seconds:.0f} s"
        progress.print(f"{number}/{len(left)} {answer.mutant}: {said}", style="dim", markup=False)
    console().print(score.table(list(answers.known.values())))
    return 0


@mutants.command("score")
@click.argument("answers", type=click.Path(path_type=Path))
@click.option("--survivors", is_flag=True, help="list those that no micrograph showed")
def score_command(answers: Path, survivors: bool) -> int:
    """What the answers of a run come to."""
    from conformance.mutants import score, trial

    known = list(trial.Answers(_there(answers)).known.values())
    console().print(score.table(known))
    if survivors:
        for answer in known:
            if not answer.detected and answer.seeded and not answer.unavailable:
                console().print(
                    f"{answer.mutant}  {answer.function}  (asked {answer.asked} of {answer.reached_by})", markup=False
                )
    return 0


@mutants.command("show")
@click.argument("names", nargs=-1, required=True)
def show(names: tuple[str, ...]) -> int:
    """What mutants change, as a diff of the installed source."""
    import ast

    from conformance.mutants import operators, recompile

    for name in names:
        for file, tree in operators.by_name(name).items():
            old, new = (ast.unparse(one).splitlines() for one in (recompile.tree_of(file), tree))
            for text in difflib.unified_diff(old, new, file, name, lineterm="", n=3):
                click.echo(text)
    return 0


@mutants.command("unreached")
@_survey
@_target
@click.option(
    "--functions", type=click.IntRange(0), default=0, help="list so many functions of each file, the largest first"
)
@click.option("--file", "files", multiple=True, metavar="GLOB", help="only these files")
def unreached(surveyed: Path, target: str, functions: int, files: tuple[str, ...]) -> int:
    """Blocks of the compiler's source that no micrograph reaches."""
    from conformance.mutants import reach, sources
    from conformance.mutants import survey as surveys

    known = surveys.Survey(_there(surveyed)).all(BACKEND, target)
    seen: set[int] = set().union(*(one.reached for one in known))
    all_of, none_of = Counter[str](), Counter[str]()
    missing: dict[str, Counter[str]] = {}
    for number, block in enumerate(reach.blocks()):
        if files and not any(fnmatchcase(block.file, glob) for glob in files):
            continue
        all_of[block.file] += 1
        if number not in seen:
            none_of[block.file] += 1
            missing.setdefault(block.file, Counter())[block.function] += 1
    table = Table("stage", "file", "blocks", "unreached", "share", title=f"{len(known)} micrographs")
    for file, count in none_of.most_common():
        share = f"{100 * count / all_of[file]:.0f} %"
        table.add_row(str(sources.stage_of(file)), file, str(all_of[file]), str(count), share)
    console().print(table)
    for file, _ in none_of.most_common() if functions else ():
        for function, count in missing[file].most_common(functions):
            click.echo(f"{file}\t{function}\t{count}")
    return 0


def _there(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    return path


COMMANDS = [mutants]

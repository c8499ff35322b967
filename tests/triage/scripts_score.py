"""How often `conformance triage SCRIPT.py` is right about the scripts of one half, on the torch that runs this.

    python tests/triage/scripts_score.py --half held --jobs 3 --cores 0-5 --results score.jsonl [--bisector] [--page FILE]

Each script that truth.toml has alive on this torch is triaged by the command line, as a user would. A stage is right if
truth.toml names it; a repro counts if it was handed over as seen to fail. The culprit is printed beside the true one, for
a person to judge. `--bisector` runs torch's CompilerBisector on the same scripts afterwards. `--half right` and `--half models` are
programs that have no bug; several halves are taken in turn, each spread over the whole run. Answers are written as they
come, and scripts in the results already are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import site
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from multiprocessing import Queue, get_context
from pathlib import Path
from typing import Any

import model_programs

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
RIGHT = HERE / "scripts_right"
THIRD = HERE / "scripts_third"
TORCH = version("torch").partition("+")[0]
# CompilerBisector's words for what it turned off, as our stages. A subsystem it does not name is no stage.
BISECTED = {
    "eager": "capture",
    "aot_eager": "decomposition",
    "aot_eager_decomp_partition": "decomposition",
    "aot_eager_decomp_partition_crossref": "decomposition",
    "pre_grad_passes": "decomposition",
    "joint_graph_passes": "decomposition",
    "post_grad_passes": "postgrad",
    "decomposition": "decomposition",
    "lowerings": "codegen",
    "inductor_fallback_random": "codegen",
    "cudagraphs": "runtime",
    "inductor": "codegen",
}


def command(words: list[str], limit: float, folder: Path) -> tuple[int | None, str, dict[str, float]]:
    """Exit (None where it ran out of time), what was printed, and seconds: by the clock, and of processor time. One
    command runs at a time in this process, so that its children's processor time is the command's. On time-out
    everything that the command started goes with it."""
    start, before = time.monotonic(), os.times()
    home = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "HOME": str(folder)}
    environment = {**os.environ, **home, "PYTHONUSERBASE": site.getuserbase()}
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        child = subprocess.Popen(
            words, stdout=printed, stderr=printed, env=environment, cwd=folder, start_new_session=True
        )
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None, "", {"seconds": round(time.monotonic() - start, 1)}
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        seconds = {"seconds": round(time.monotonic() - start, 1), "cpu": round(used, 1)}
        printed.seek(0)
        return child.returncode, printed.read(), seconds


def triaged(name: str, limit: float) -> dict[str, Any]:
    """What the command said of one script or model."""
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at)
        words = ["triage", subject(name, folder), "--json", "-o", str(folder / "out")]
        code, printed, seconds = command([sys.executable, "-m", "conformance.cli", *words], limit, folder)
        answer: dict[str, Any] = {"script": name, "torch": TORCH, "exit": code, **seconds}
        start = f"\n{printed}".find("\n{\n")
        if start < 0:
            return {**answer, "verdict": "out of time" if code is None else "none", "said": printed.strip()[-300:]}
        said = json.JSONDecoder().raw_decode(printed[start:])[0]
        kept = {
            key: said.get(key)
            for key in ("verdict", "stage", "kind", "verified", "unwritten", "rungs", "notes", "detail")
        }
        kept["steps"] = said.get("seconds")
        culprit, repro = said.get("culprit") or {}, said.get("repro")
        exits = command([sys.executable, repro], 120, folder)[0] if repro else 0
        text = Path(repro).read_text() if repro else ""
        named = f"{culprit.get('what', '')} {culprit.get('name', '')}"
        return {**answer, **kept, "culprit": named, "repro": exits, "text": text}


def subject(name: str, folder: Path) -> str:
    """What the command is given for a name: a script's file, or a model written into `folder`."""
    if name in model_programs.NAMES:
        return model_programs.write(name, folder)
    return str(next(at / f"{name}.py" for at in (SCRIPTS, RIGHT, THIRD) if (at / f"{name}.py").exists()))


def bisected(name: str, limit: float) -> dict[str, Any]:
    """What torch's own bisector says of one script."""
    with tempfile.TemporaryDirectory() as at:
        script = subject(name, Path(at))
        words = [sys.executable, "-m", "torch._inductor.compiler_bisector", "run", sys.executable, script]
        code, printed, seconds = command(words, limit, Path(at))
        found = re.search(r"BisectionResult\(backend='?(\w+)'?, subsystem='?(\w+)'?", printed)
        backend, subsystem = found.groups() if found else ("", "")
        stage = BISECTED.get(subsystem) or BISECTED.get(backend, "")
        return {"exit": code, **seconds, "backend": backend, "subsystem": subsystem, "stage": stage}


def named(true: str, said: str) -> bool | None:
    """Does triage name the true culprit? None where a person must judge: a construct of Python has many names."""
    if ops := re.findall(r"aten\.(\w+)", true):
        return all(f"aten.{op}" in said for op in ops)
    return said.startswith("guard") if true.startswith("no guard") else None


def lines(answers: list[dict[str, Any]], truth: dict[str, Any]) -> list[str]:
    """The score, and a row a script."""
    wrong = [one for one in answers if one["script"] in truth]
    stage = sum(one.get("stage") in stages(truth[one["script"]]) for one in wrong)
    fails = sum(bool(one.get("repro")) for one in wrong)
    judged = [named(truth[one["script"]]["culprit"], one.get("culprit", "")) for one in wrong]
    alarms = [one["script"] for one in answers if one["script"] not in truth and one["verdict"] != "right"]
    said = [
        f"torch {TORCH}: {len(wrong)} scripts; stage right {stage}; repro fails {fails}; culprit named {judged.count(True)}, "
        f"another {judged.count(False)}, for a person to judge {judged.count(None)}",
        f"seconds: {spread(answers, 'seconds')}; of processor time: {spread(answers, 'cpu')}; until stage and culprit are "
        f"named: {spread([{'seconds': until_named(one)} for one in answers], 'seconds')}",
        f"right programs: {len(answers) - len(wrong)}; alarms: {', '.join(alarms) or 'none'}",
    ]
    both = [one for one in wrong if "bisector" in one]
    if both:
        right = sum(one["bisector"]["stage"] in stages(truth[one["script"]]) for one in both)
        ratios = {key: ratio(both, key) for key in ("seconds", "cpu")}
        until = [{**one, "seconds": until_named(one)} for one in both]
        said.append(
            f"CompilerBisector: {len(both)} scripts, stage right {right}; ours / its, median: {ratios['seconds']:.2f} by the clock, "
            f"{ratios['cpu']:.2f} of processor time; {ratio(until, 'seconds'):.2f} by the clock until stage and culprit are named"
        )
    said += [
        "",
        "| script | stage | true stage | repro | s | CPU s | bisector | s | CPU s | culprit | true culprit |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(wrong, key=lambda one: str(one["script"])):
        true, its = truth[one["script"]], one.get("bisector", {})
        cells = [one["script"], one.get("stage") or one["verdict"], true["stage"], one.get("repro") or "none"]
        cells += [one["seconds"], one.get("cpu", ""), its.get("stage", ""), its.get("seconds", ""), its.get("cpu", "")]
        cells += [one.get("culprit", "").strip()[:90], true["culprit"]]
        said.append("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return said


def ratio(both: list[dict[str, Any]], key: str) -> float:
    """Ours by the bisector's, median. A bisector that ran out of time took at least as long as it was given."""
    found = [one[key] / one["bisector"][key] for one in both if one.get(key) and one["bisector"].get(key)]
    return statistics.median(found) if found else float("nan")


def until_named(one: dict[str, Any]) -> float:
    """Seconds without what the bisector does not do: make the script smaller, write a repro and run it."""
    steps = one.get("steps") or {}
    return float(one["seconds"] - steps.get("reduce", 0.0) - steps.get("repro", 0.0))


def spread(answers: list[dict[str, Any]], key: str) -> str:
    values = [one[key] for one in answers if key in one]
    return f"median {statistics.median(values):.0f}, longest {max(values):.0f}" if values else "not measured"


def stages(true: dict[str, Any]) -> set[str]:
    return {true["stage"], *true.get("or", ())}


def names(half: str, truth: dict[str, Any]) -> list[str]:
    """The programs of one half, every n-th first, so that a run that is cut short has seen all classes."""
    if half == "right":
        found = sorted(path.stem for path in RIGHT.glob("*.py"))
    elif half == "models":
        found = list(model_programs.NAMES)
    elif half == "third":
        found = sorted(name for name, one in truth.items() if one["half"] == half)
    else:
        found = sorted(name for name, one in truth.items() if one["half"] == half and TORCH in one["alive"])
    return [name for start in range(5) for name in found[start::5]]


def known_truth() -> dict[str, Any]:
    """What is wrong with each script, of both folders."""
    third = tomllib.loads((THIRD / "truth.toml").read_text())
    return tomllib.loads((SCRIPTS / "truth.toml").read_text()) | {
        name: {**one, "half": "third"} for name, one in third.items()
    }


def in_turn(halves: list[list[str]]) -> list[str]:
    """All names, those of each half spread evenly over the whole."""
    placed = [((at + 0.5) / len(half), name) for half in halves for at, name in enumerate(half)]
    return [name for _, name in sorted(placed, key=lambda one: one[0])]


def pin(cores: Queue[set[int]]) -> None:
    """Keeps this worker, and all that it starts, on cores of its own."""
    if wanted := cores.get():
        os.sched_setaffinity(0, wanted)


def answered(name: str, tool: str, limit: float, until: float) -> dict[str, Any] | None:
    """What triage or the bisector says of one program; None where no time is left for it (`until`, by the clock)."""
    left = until - time.time()
    if left <= 0:
        return None
    if tool == "triage":
        answer = triaged(name, min(limit, left))
    else:
        answer = {"script": name, "torch": TORCH, "bisector": bisected(name, min(limit, left))}
    cut_short = (answer if tool == "triage" else answer["bisector"])["exit"] is None and left < limit
    return None if cut_short else answer


def merged(results: Path) -> list[dict[str, Any]]:
    """The lines of a file of results, one a program: triage and the bisector write lines of their own."""
    found: dict[str, dict[str, Any]] = {}
    for line in results.read_text().splitlines() if results.exists() else ():
        one = json.loads(line)
        found.setdefault(one["script"], {}).update(one)
    return list(found.values())


def shared(cores: str, jobs: int) -> list[set[int]]:
    """`0-5` for three workers: {0, 1}, {2, 3}, {4, 5}. Nothing is pinned without cores."""
    if not cores:
        return [set()] * jobs
    first, _, last = cores.partition("-")
    all_ = list(range(int(first), int(last or first) + 1))
    size = max(1, len(all_) // jobs)
    return [set(all_[at * size : (at + 1) * size]) for at in range(jobs)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["develop", "held", "third", "right", "models"], nargs="+", default=["held"])
    parser.add_argument("--only", default="", help="programs with this in their names")
    parser.add_argument("--skip", nargs="*", default=[], metavar="NAME", help="programs that were run before")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cores", default="", help="FIRST-LAST: each job gets its share of these and no other")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one script")
    parser.add_argument("--within", type=float, default=1e6, help="seconds for all; what has not ended is left out")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--bisector", action="store_true")
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    until = time.time() + options.within
    truth = known_truth()
    known = merged(options.results)
    wanted = [name for name in in_turn([names(half, truth) for half in options.half]) if options.only in name]
    done = {*options.skip, *(one["script"] for one in known if "verdict" in one)}
    tasks = [(name, "triage") for name in wanted if name not in done]
    if options.bisector:
        have = {one["script"] for one in known if "bisector" in one}
        tasks += [(name, "bisector") for name in wanted if name in truth and name not in have]
    context = get_context("spawn")
    cores: Queue[set[int]] = context.Queue()
    for share in shared(options.cores, options.jobs):
        cores.put(share)
    with ProcessPoolExecutor(options.jobs, context, pin, (cores,)) as pool:
        running = [pool.submit(answered, name, tool, options.limit, until) for name, tool in tasks]
        for done in as_completed(running):
            if (answer := done.result()) is None:
                continue
            with options.results.open("a") as results:
                results.write(json.dumps(answer) + "\n")
            its = answer.get("bisector", answer)
            print(f"{answer['script']}: {its.get('stage') or its.get('verdict')} {its['seconds']} s", flush=True)
    text = "\n".join(lines([one for one in merged(options.results) if "verdict" in one], truth))
    print(text)
    if options.page:
        options.page.write_text(text + "\n")


if __name__ == "__main__":
    main()

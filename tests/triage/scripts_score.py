"""How often `conformance triage SCRIPT.py` is right about the scripts of one half, on the torch that runs this.

    python tests/triage/scripts_score.py --half held --jobs 2 --results score.jsonl [--bisector] [--page FILE]

Each script that truth.toml has alive on this torch is triaged by the command line, as a user would. A stage is right if
truth.toml names it; a repro counts if it was handed over as seen to fail. The culprit is printed beside the true one, for
a person to judge. `--bisector` runs torch's CompilerBisector on the same scripts. Scripts in the results already are not
run again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
RIGHT = HERE / "scripts_right"
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
    """Exit (None where it ran out of time), what was printed, and seconds: by the clock, and of processor time, which
    counts where nothing else runs beside it. The environment is this process's."""
    start, before = time.monotonic(), os.times()
    home = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "HOME": str(folder)}
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, env=home, cwd=folder)
    except subprocess.TimeoutExpired:
        return None, "", {"seconds": round(time.monotonic() - start, 1)}
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    seconds = {"seconds": round(time.monotonic() - start, 1), "cpu": round(used, 1)}
    return done.returncode, done.stdout + "\n" + done.stderr, seconds


def triaged(script: Path, limit: float) -> dict[str, Any]:
    """What the command said of one script."""
    with tempfile.TemporaryDirectory() as name:
        words = ["triage", str(script), "--json", "-o", str(Path(name) / "out")]
        code, printed, seconds = command([sys.executable, "-m", "conformance.cli", *words], limit, Path(name))
        answer: dict[str, Any] = {"script": script.stem, "torch": TORCH, "exit": code, **seconds}
        start = f"\n{printed}".find("\n{\n")
        if start < 0:
            return {**answer, "verdict": "none", "said": printed.strip()[-300:]}
        said = json.JSONDecoder().raw_decode(printed[start:])[0]
        kept = {
            key: said[key] for key in ("verdict", "stage", "kind", "verified", "unwritten", "rungs", "notes", "detail")
        }
        kept["steps"] = said["seconds"]
        culprit = said["culprit"] or {}
        repro = subprocess.run([sys.executable, said["repro"]], capture_output=True).returncode if said["repro"] else 0
        return {**answer, **kept, "culprit": f"{culprit.get('what', '')} {culprit.get('name', '')}", "repro": repro}


def bisected(script: Path, limit: float) -> dict[str, Any]:
    """What torch's own bisector says of one script."""
    with tempfile.TemporaryDirectory() as name:
        words = [sys.executable, "-m", "torch._inductor.compiler_bisector", "run", sys.executable, str(script)]
        code, printed, seconds = command(words, limit, Path(name))
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
        f"seconds: {spread(answers, 'seconds')}; of processor time: {spread(answers, 'cpu')}",
        f"right programs: {len(answers) - len(wrong)}; alarms: {', '.join(alarms) or 'none'}",
    ]
    both = [one for one in wrong if "bisector" in one]
    if both:
        right = sum(one["bisector"]["stage"] in stages(truth[one["script"]]) for one in both)
        ratios = {
            key: statistics.median(one[key] / one["bisector"][key] for one in both if one["bisector"].get(key))
            for key in ("seconds", "cpu")
        }
        said.append(
            f"CompilerBisector: {len(both)} scripts, stage right {right}; ours / its, median: {ratios['seconds']:.2f} by the clock, "
            f"{ratios['cpu']:.2f} of processor time"
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


def spread(answers: list[dict[str, Any]], key: str) -> str:
    values = [one[key] for one in answers if key in one]
    return f"median {statistics.median(values):.0f}, longest {max(values):.0f}" if values else "not measured"


def stages(true: dict[str, Any]) -> set[str]:
    return {true["stage"], *true.get("or", ())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["develop", "held", "right"], default="held")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one script")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--bisector", action="store_true")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    truth = tomllib.loads((SCRIPTS / "truth.toml").read_text())
    known = [json.loads(line) for line in options.results.read_text().splitlines()] if options.results.exists() else []
    have = {one["script"] for one in known}
    if options.half == "right":
        chosen = sorted(RIGHT.glob("*.py"))
    else:
        alive = (name for name, one in truth.items() if one["half"] == options.half and TORCH in one["alive"])
        chosen = [SCRIPTS / f"{name}.py" for name in alive]

    def one(script: Path) -> None:
        answer = triaged(script, options.limit)
        if options.bisector:
            answer["bisector"] = bisected(script, options.limit)
        known.append(answer)
        with options.results.open("a") as results:
            results.write(json.dumps(answer) + "\n")
        print(f"{answer['script']}: {answer.get('stage') or answer['verdict']} {answer['seconds']} s", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, (script for script in chosen if script.stem not in have)))
    text = "\n".join(lines(known, truth))
    print(text)
    if options.page:
        options.page.write_text(text + "\n")


if __name__ == "__main__":
    main()

"""What the programs of the grammars found: a cause, its smallest program, and a script that shows it."""

from __future__ import annotations

import inspect
import json
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.files import parse_json, read_regular
from conformance.fuzz import observed
from conformance.fuzz.home import home
from conformance.fuzz.program import Program
from conformance.fuzz.rungs import on
from conformance.repro import Report, docstring

MAX_FILE = 64 << 20
KINDS = {
    "raises": "crash",
    "observed": "bad_code",
    "dtype": "wrong_metadata",
    "shape": "wrong_metadata",
    "stride": "wrong_metadata",
    "requires_grad": "wrong_metadata",
}
CHECK = """

if __name__ == "__main__":
    import importlib.util
    import sys
    from typing import Any

    torch._inductor.config.fallback_random = True  # draw as eager does

{observed}
    def fresh(name):
        '''This file as a module of its own.'''
        spec = importlib.util.spec_from_file_location(name, __file__)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    want = outcome(fresh("uncompiled").play, lambda fn: fn)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_autocast_enabled("cpu", False)
    got = outcome(fresh("compiled").play, lambda fn: torch.compile(fn, backend={backend!r}))
    found = difference(want, got, signs={signs})
    print(found or "as eager")
    sys.exit(1 if found else 0)
"""


@dataclass
class ProgramFinding:
    """cause     as `causes.cause_of` names it; report is its number, where it is public
    what      differs, in the words of `observed.difference`; detail: how
    program   the smallest that was found; rung: the first that shows it
    met       how often it was met, the first time included
    """

    cause: str
    report: str
    stage: str
    what: str
    detail: str
    program: Program
    rung: str
    versions: dict[str, str]
    culprit: str = ""
    met: int = 1
    confirmed: bool = False
    seconds: float = 0.0  # since the session began
    repro: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.program.id

    @property
    def kind(self) -> str:
        return KINDS.get(self.what, "wrong_result")

    @property
    def cause_text(self) -> str:
        return f"{self.report}: {self.cause}" if self.report else self.cause

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "program": self.program.to_json(), "id": self.id, "kind": self.kind}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ProgramFinding:
        fields = {name: value for name, value in data.items() if name not in ("id", "kind", "program")}
        return cls(**fields, program=Program.from_json(data["program"]))

    def __str__(self) -> str:
        culprit = f" [{self.culprit}]" if self.culprit else ""
        return f"{self.stage}/program.{self.program.grammar}: {self.kind}: {self.cause_text}{culprit}: {self.detail}"


def script(finding: ProgramFinding) -> str:
    """The finding as a script that needs torch alone and exits 1 while it is there."""
    report = Report(
        f"{finding.stage}: {finding.kind}: {finding.cause}",
        finding.stage,
        "what eager gives",
        finding.detail,
        {name: finding.versions[name] for name in ("torch", "python") if name in finding.versions},
        culprit=finding.culprit,
    )
    text = inspect.getsource(observed).split("import torch\n", 1)[1]
    check = CHECK.format(
        observed=textwrap.indent(text.strip("\n") + "\n", "    "),
        backend=on(finding.rung).backend,
        signs=finding.program.rules.signs,
    )
    return f"{docstring(report, 'Found by fuzzing.')}\n\n{finding.program.source}{check}"


def write_script(finding: ProgramFinding, folder: Path | None = None) -> Path:
    folder = folder or home() / "repros"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"program_{finding.program.grammar}_{finding.id}.py"
    file.write_text(script(finding))
    return file


def exit_code(path: str, cache: str = "") -> int:
    """Run a script in this process, as `python script.py` would, with this folder for Inductor's caches; what it exits
    with. Its output is thrown away."""
    from conformance.triage.subject import script as subject

    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": cache} if cache else {}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        subject(Path(path)).execute()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        return 70
    return 0


def stage_and_culprit(path: str) -> tuple[str, str]:
    """What triage says of a script, in a process that has compiled nothing: its stage and culprit, or empty words."""
    from conformance.triage.runs import Runs
    from conformance.triage.script_search import Search
    from conformance.triage.script_triage import made_ready
    from conformance.triage.subject import script as subject

    adapter, versions = made_ready("inductor")
    runs = Runs(adapter.hold, limit=60.0, workers=1)
    runs.prepare()
    try:
        answer = Search(subject(Path(path)), adapter, runs, versions).run(None, shrink=False)
    finally:
        runs.close()
    return (answer.stage.value if answer.stage else "", answer.culprit.name if answer.culprit else "")


class ProgramFindings:
    """All findings of programs on this machine, one a line."""

    def __init__(self, path: Path | None = None, complain: Callable[[str], None] = lambda text: None) -> None:
        self.path = path or home() / "programs.jsonl"
        self.complain = complain

    def add(self, finding: ProgramFinding) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(finding.to_json()) + "\n")

    def known(self) -> dict[str, ProgramFinding]:
        """What was found before, by id; lines that are damaged are told and left out."""
        found: dict[str, ProgramFinding] = {}
        if not os.path.lexists(self.path):
            return found
        for number, line in enumerate(read_regular(self.path, "the findings", MAX_FILE).splitlines(), 1):
            try:
                finding = ProgramFinding.from_json(parse_json(line, "the line"))
            except (UsageError, AttributeError, TypeError, KeyError) as error:
                self.complain(f"{self.path}:{number} is left out: {error}")
                continue
            found[finding.id] = finding
        return found

"""Run the library through the backend and print what is wrong, briefly: for a machine that one has for minutes only.

    python tests/torch_tensorrt/on_gpu.py                       # target cuda
    CUDA_VISIBLE_DEVICES= python tests/torch_tensorrt/on_gpu.py -t sm_90
    python tests/torch_tensorrt/on_gpu.py -m 'kv_cache.*' -m 'mutation.*' --seconds 150 --record FILE
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
import warnings
from collections import Counter
from fnmatch import fnmatchcase

from conformance import expectations
from conformance.backends import get
from conformance.backends.torch_tensorrt.compiled import TorchTensorRTCompiled
from conformance.environment import environment, versions
from conformance.micrograph import load
from conformance.target import Target
from conformance.verdict import Verdict
from conformance.workbench import Workbench

QUIET = (Verdict.PASS, Verdict.BLOCKED, Verdict.UNAVAILABLE, Verdict.UNSUPPORTED, Verdict.XFAIL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-t", "--target", default="cuda")
    parser.add_argument("-m", "--micrograph", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=170.0, help="stop after so many, and say what was left out")
    parser.add_argument("--record", help="JSON Lines, one line a cell")
    parser.add_argument("--all", action="store_true", help="show every verdict, expected ones too")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    backend, target = get("torch_tensorrt"), Target.parse(asked.target)
    print(json.dumps({"versions": backend.versions(), "gpu": environment()["gpu"], "unavailable": _plain(backend.unavailable(target))}))
    _show_crashes()
    bench = Workbench(expectations.load(versions=versions()))
    chosen = {n: c for n, c in load().items() if any(fnmatchcase(n, glob) for glob in asked.micrograph or ["*"])}
    started, tally, lines = time.monotonic(), Counter[tuple[str, str]](), []
    for done, (name, micrograph) in enumerate(chosen.items()):
        if time.monotonic() - started > asked.seconds:
            print(f"stopped: {len(chosen) - done} of {len(chosen)} left out, from {name} on")
            break
        try:
            results = bench.examine(micrograph, backend, target)
        except Exception:
            print(f"{name}: the suite itself failed\n{traceback.format_exc(limit=-4)}")
            continue
        lines += [json.dumps(result.to_json()) for result in results.values()]
        for stage, result in results.items():
            tally[stage.value, result.verdict.value] += 1
            if asked.all or result.verdict not in QUIET:
                print(f"{name} {stage.value} {result.verdict.value}: {result.reason[:300]}", flush=True)
    print(f"{time.monotonic() - started:.0f} s")
    for stage in dict.fromkeys(stage for stage, _ in tally):
        print(f"{stage:14}", ", ".join(f"{count} {verdict}" for (s, verdict), count in tally.items() if s == stage))
    if asked.record:
        with open(asked.record, "w") as file:
            file.writelines(line + "\n" for line in lines)


def _plain(reasons: dict) -> dict[str, str]:
    return {stage.value: why for stage, why in reasons.items()}


def _show_crashes() -> None:
    """A crash of the compiler is one line in the record; here its last frames are wanted too."""
    real = TorchTensorRTCompiled._failed

    def failed(self: TorchTensorRTCompiled, stage):
        if stage is self.recording.reached:
            print("".join(traceback.format_exception(self.recording.error, limit=-2))[-900:], flush=True)
        return real(self, stage)

    TorchTensorRTCompiled._failed = failed  # type: ignore[method-assign]


if __name__ == "__main__":
    main()

"""What a failure of an upstream test says: its cause, its first line without what differs from run to run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.record_writer import without_folders
from conformance.upstream.stage_map import Missing
from conformance.verdict import Kind

# The causes, in the order in which they are looked for.
CAUSES = {
    "missing": "something that this machine does not have",
    "private_name": "a private name that the installed version does not have, or has with another signature",
    "public_name": "a public name that the installed version does not have, or has with another signature",
    "expected_text": "a text (a graph, generated code, a message) that differs from the one written in the test",
    "values": "tensors that differ from eager's",
    "assertion": "another assertion of the test",
    "exception": "an exception that the test does not expect",
    "crash": "the process died",
    "timeout": "the test did not end in time",
}
KINDS = {
    "values": Kind.WRONG_RESULT,
    "assertion": Kind.WRONG_RESULT,
    "expected_text": Kind.WRONG_RESULT,
    "timeout": Kind.TIMEOUT,
}

# How Python and torch say that a name is gone. The group is the name, or its owner and the name.
GONE = (
    r"cannot import name '(?P<name>\w+)' from '(?P<owner>[\w.]+)'",
    r"module '(?P<owner>[\w.]+)' has no attribute '(?P<name>\w+)'",
    r"<module '(?P<owner>[\w.]+)'.*> does not have the attribute '(?P<name>\w+)'",
    r"No module named '(?P<name>(?:torch|torch_tensorrt|tensorrt_llm|functorch)(?:\.\w+)+)'",
    r"(?P<name>torch\.[\w.]+) does not exist",
    r"type object '(?P<owner>\w+)' has no attribute '(?P<name>\w+)'",
)
INSTALLED = "site-packages"
PACKAGE = re.compile(r"No module named '(?P<name>[\w.]+)'")
COMPILERS = ("torch", "functorch", "torch_tensorrt", "tensorrt_llm")
PRIVATE_MODULES = ("torch.testing._internal", "torch.fx.experimental")


@dataclass(frozen=True)
class Failure:
    """A failure, judged: its cause, and for a missing thing or a name, what it is."""

    cause: str
    line: str
    what: str = ""

    @property
    def kind(self) -> Kind:
        return KINDS.get(self.cause, Kind.CRASH)


def judge(event: Mapping[str, Any], missing: Iterable[Missing], same_version: bool) -> Failure:
    """The cause of a failed test or import. A name that is gone counts as such only where the tests are of another
    version than the package: in its own version it is an ordinary failure."""
    line = normalized(str(event.get("line", "")))
    message = f"{event.get('type', '')}: {event.get('message', '')}"
    for one in missing:
        if match := one.pattern.search(f"{line}\n{message}"):
            return Failure("missing", line, match.expand(one.reason) if match.groups() else one.reason)
    if (package := PACKAGE.search(line)) and package["name"].split(".")[0] not in COMPILERS:
        return Failure("missing", line, f"needs the package {package['name'].split('.')[0]}")
    if not same_version and (name := gone_name(event)):
        return Failure("private_name" if is_private(name) else "public_name", line, name)
    functions = {frame[1] for frame in event.get("frames", ())}
    if (
        functions & {"assertExpectedInline", "assertExpected", "assertExpectedStripMangled", "check"}
        and "assertExpectedInline" in functions
    ):
        return Failure("expected_text", line)
    if "Tensor-likes are not" in message or "Mismatched elements" in message:
        return Failure("values", line)
    return Failure("assertion" if event.get("type") == "AssertionError" else "exception", line)


def gone_name(event: Mapping[str, Any]) -> str:
    """The dotted name that does not exist, or the function that was called with a signature it does not have; else
    empty."""
    message, frames = str(event.get("message", "")), event.get("frames", ())
    if event.get("type") in ("ImportError", "ModuleNotFoundError", "AttributeError", "KeyError", "RuntimeError"):
        for pattern in GONE:
            if match := re.search(pattern, message):
                owner = match.groupdict().get("owner")
                return f"{owner}.{match['name']}" if owner else match["name"]
    if event.get("type") == "TypeError" and event.get("callee") and frames:
        return f"{event['callee']}.{message.partition('(')[0]}"
    asked = str(event.get("attribute", ""))
    if asked.split(".")[0] in COMPILERS and frames and INSTALLED not in str(frames[-1][0]):
        return asked  # the test itself asked for it; where the compiler does so, that is a failure of the compiler
    return ""


def is_private(name: str) -> bool:
    return (
        any(part.startswith("_") for part in name.split(".")[:-1])
        or name.split(".")[-1].startswith("_")
        or name.startswith(PRIVATE_MODULES)
    )


def normalized(line: str) -> str:
    """A first line without addresses, folders and times, so that the same failure reads the same in another process."""
    line = without_folders(line)
    line = re.sub(r"\b0x[0-9a-f]{6,}\b", "0x…", line)
    line = re.sub(r"/tmp/[\w./-]+", "/tmp/…", line)
    return " ".join(line.split())[:300]


def alike(first: str, second: str) -> bool:
    """Do two first lines say the same failure? Numbers may differ: they are what a shorter compiler changes."""
    return re.sub(r"[\d.e+-]*\d", "#", first) == re.sub(r"[\d.e+-]*\d", "#", second)

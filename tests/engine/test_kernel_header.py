"""The header that kernels are compiled with, its templates instantiated: the same instructions, and torch's own way where it is not there."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.backends.inductor import kernel_header, kernel_store
from conformance.backends.inductor.compiled import empty_caches
from conformance.backends.inductor.seam import seam

pytestmark = pytest.mark.own_process  # it compiles

PADDING = ("nop", "xchg   %ax,%ax")


def programs() -> list[Any]:
    def norm(x: torch.Tensor) -> torch.Tensor:
        return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)).to(torch.bfloat16)

    def scan(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x.cumsum(0), x.exp()).argmax(-1)

    def integers(x: torch.Tensor) -> torch.Tensor:
        return (x * 10).to(torch.int8).sort(-1).values // 3

    return [norm, scan, integers]


@pytest.fixture
def commands(tmp_path: Path) -> list[str]:
    """torch's commands for a few kernels; their sources stay."""
    kept: list[str] = []

    def noted(proceed: Any, command: str, folder: str) -> Any:
        asked = kernel_header.parsed(command)
        if asked is not None and not asked.makes_header:
            kept.append(command)
        return proceed(command, folder)

    with empty_caches(tmp_path / "caches"), kernel_store.kernel_store(), seam.subscribe(run_cpp_compiler=noted):
        for program in programs():
            torch.compile(program)(torch.randn(12, 70))
    assert len(kept) >= 3
    return kept


def instructions(command: str, header: Path) -> dict[str, Counter[str]]:
    """Of each function of a kernel: its instructions, without addresses."""
    asked = kernel_header.parsed(command)
    assert asked is not None
    source = next(word for word in asked.words if word.endswith(".cpp"))
    compiled = header.with_suffix(".o")
    words = [asked.words[0], *asked.flags(), "-include", str(header), source, "-c", "-o", str(compiled)]
    subprocess.run(words, check=True, capture_output=True)
    listing = subprocess.run(
        ["objdump", "-dr", "--no-show-raw-insn", str(compiled)], capture_output=True, text=True, check=True
    ).stdout
    functions: dict[str, Counter[str]] = {}
    for line in listing.splitlines():
        if start := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            functions[start[1]] = Counter()
        elif functions and re.match(r"\s*[0-9a-f]+:\t", line) and not any(word in line for word in PADDING):
            words_of_line = re.sub(r"^\s*[0-9a-f]+:\s*", "", line)
            plain = re.sub(r"\bR_\S+.*|\.LC\d+|-?0x[0-9a-f]+\(%rip\)|[0-9a-f]+ <[^>]*>|#.*", "", words_of_line)
            functions[next(reversed(functions))][plain.strip()] += 1
    return functions


def test_kernels_have_the_same_instructions_with_either_header(commands: list[str], tmp_path: Path) -> None:
    ours = kernel_header.kept_at(commands[0])
    assert ours is not None and ours.name == "kernel.h.gch", "GCC takes the plugin here"
    plain, instantiated = tmp_path / "plain.h", tmp_path / "instantiated.h"
    asked = kernel_header.parsed(commands[0])
    assert asked is not None
    plain.write_text(asked.header.read_text())
    instantiated.symlink_to(ours.with_suffix(""))
    (tmp_path / "instantiated.h.gch").symlink_to(ours)
    for command in commands:
        expected = instructions(command, plain)
        assert instructions(command, instantiated) == expected
        assert any("kernel" in name for name in expected) and sum(map(len, expected.values())) > 50


def test_torchs_own_header_is_not_made_where_no_kernel_will_include_it(commands: list[str]) -> None:
    asked = kernel_header.parsed(commands[0])
    assert asked is not None
    made = shlex.join(
        [asked.words[0], "-x", "c++-header", str(asked.header), *asked.flags(), "-o", f"{asked.header}.gch"]
    )
    run: list[str] = []
    kernel_store._stored(lambda command, folder: run.append(command), made, "")
    assert run == []
    assert kernel_header.is_not_needed(made)


def test_a_kernel_that_our_header_refuses_is_compiled_by_torchs_command(commands: list[str]) -> None:
    run: list[str] = []

    def refusing(command: str, folder: str) -> None:
        run.append(command)
        if str(kernel_header.kept_at(commands[0])).removesuffix(".gch") in command:
            raise RuntimeError("error: specialization after instantiation")

    kernel_store._compiled(refusing, commands[0], "")
    assert run == [run[0], commands[0]] and run[0] != commands[0]


def test_other_compilers_have_torchs_header(commands: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_header, "_identity", lambda compiler: "clang version 19.1.7")
    kernel_header._plugin.cache_clear()
    assert kernel_header.with_ours(commands[0]) == commands[0]
    kernel_header._plugin.cache_clear()


def test_nothing_is_kept_that_was_made_beside_a_plugin(
    commands: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "somebodys_fault")
    assert kernel_header.with_ours(commands[0]) == commands[0]
    assert not list((tmp_path / "home").rglob("*.gch"))


def test_which_header_belongs_to_some_flags_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_HOME", str(tmp_path / "home"))
    header, asked = tmp_path / "a.h", []

    def find(*args: Any, **kwargs: Any) -> str:
        asked.append(args)
        header.touch()
        return str(header)

    flags = ("cpp_prefix.h", "g++ -O3"), {"vec_isa": object()}
    for _ in range(2):
        assert kernel_header.named(find, *flags[0], **flags[1]) == str(header)
    assert len(asked) == 1
    kernel_header.named(find, "cpp_prefix.h", "g++ -O2", vec_isa=flags[1]["vec_isa"])
    assert len(asked) == 2, "other flags"
    header.unlink()
    kernel_header.named(find, *flags[0], **flags[1])
    assert len(asked) == 3, "it is gone"
    monkeypatch.setenv("CONFORMANCE_PLUGINS", "somebodys_fault")
    kernel_header.named(find, *flags[0], **flags[1])
    assert len(asked) == 4, "somebody's plugin may change the answer"

"""What is known already is no new finding; what is not known beside it still is."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import backends
from conformance.errors import UsageError
from conformance.fuzz.coverage import Tally
from conformance.fuzz.known import Known, Register, described, load
from conformance.fuzz.search import Profile, search
from conformance.fuzz.served import runner_for
from conformance.fuzz.strategies import plain, trigger
from conformance.library import load as library
from conformance.oracle import Difference
from conformance.paths import PACKAGE
from conformance.target import CPU
from conformance.verdict import Kind
from tests.fuzz.faulty_backends import LyingBackend

CHAIN = library()["pointwise.chain"]
ODD = Known("lying", "wrong_result", "out of tolerance", r"aten\.mul\b.*sizes:", "", "a link", "odd sizes are wrong")


def register(*entries: Known) -> Register:
    return Register(entries, (), "lying", "cpu")


def test_every_known_defect_is_where_it_says() -> None:
    for entry in load():
        assert entry.link.startswith("https://") or (PACKAGE.parent / entry.link).exists(), entry


def test_a_known_defect_raises_no_alarm_and_is_counted() -> None:
    known = register(ODD)
    few = Profile("test", forms=1, examples=30, static=0, minutes=1.0)
    runner = runner_for(LyingBackend("odd sizes"), CPU, CHAIN, Tally(), register=known)
    assert search(runner, few, 0) is None
    runner.close()
    assert known.met["odd sizes are wrong (a link)"] > 3
    runner = runner_for(LyingBackend("odd sizes"), CPU, CHAIN, Tally(), register=register())
    assert search(runner, few, 0) is not None
    runner.close()


def test_all_of_it_must_be_known() -> None:
    call = trigger(CHAIN, plain(CHAIN))
    wrong = Difference(Kind.WRONG_RESULT, "output 0", "3 of 4 elements out of tolerance")
    other = Difference(Kind.WRONG_METADATA, "output 1", "dtype bool, eager has uint8")
    assert register(ODD).explains(CHAIN, "", call, [wrong])
    assert not register(ODD).explains(CHAIN, "", call, [wrong, other])
    assert not register(ODD).explains(CHAIN, "", call, [])
    assert "sizes: " in described(CHAIN, "", call)


def test_what_the_suite_expects_is_known_for_that_micrograph() -> None:
    from conformance import expectations

    entries = expectations.load(versions={"torch_tensorrt": "2.14.0"}).entries
    expected = Register((), entries, "torch_tensorrt", "sm_90")
    lost = Difference(Kind.LOST_MUTATION, "input 0", "after the call it is not what eager left")
    plain_copy = library()["kv_cache.plain_copy"]
    assert expected.explains(plain_copy, "", None, [lost])
    assert not expected.explains(CHAIN, "", None, [lost])
    assert not expected.explains(plain_copy, "", None, [Difference(Kind.CRASH, "call", "")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('backend = "x"\nkind = "crash"\nwhy = "y"', "repro or a url"),
        ('backend = "x"\nkind = "crush"\nwhy = "y"\nurl = "z"', "crush"),
        ('backend = "x"\nkind = "crash"\nwhy = "y"\nurl = "z"\ndetail = "("', "no regular expression"),
        ('backend = "x"\nkind = "crash"\nwhy = "y"\nurl = "z"\ngraphs = "a"', "graphs"),
        ("backend = ", "is not TOML"),
    ],
)
def test_a_mistake_in_the_list_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text("[[known]]\n" + text)
    with pytest.raises(UsageError, match=said):
        load(tmp_path)


def test_versions_decide() -> None:
    assert any("huber_loss" in e.why for e in Register.of(backends.get("inductor"), CPU).entries)

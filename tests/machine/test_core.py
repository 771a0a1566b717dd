"""`[core]`: parameters by which schedules choose tiles, given as numbers or read from the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tecomp.errors import TargetError
from tecomp.machine import Target, host_caches, host_cores, host_dots, host_vectors, read_target
from tests.messages import Diagnostic, diagnostic

TOY = '''
name = "toy"
description = "a toy"

[core]
count = 2
vector_bytes = 32
vector_registers = 16
cache_bytes = [1024, 4096]
source = "made up"

[memory.dram]
scope = "chip"
rank = 1
alignment_bytes = 64
source = "made up"
'''


def test_numbers() -> None:
    core = read_target(TOY, "toy.toml").core

    assert core is not None
    assert (core.count, core.vector_bytes, core.vector_registers) == (2, 32, 16)
    assert core.cache_bytes == (1024, 4096)
    assert [core.lanes(name) for name in ("float64", "float32", "int8")] == [4, 8, 32]


def test_host_description() -> None:
    core = Target.load("cpu").core

    assert core is not None
    assert (core.vector_bytes, core.vector_registers) == host_vectors()
    assert core.cache_bytes == host_caches()
    assert core.vector_bytes in (16, 32, 64)
    assert list(core.cache_bytes) == sorted(core.cache_bytes)
    assert core.count == host_cores() >= 1
    assert core.dots == host_dots()


def test_products_that_one_instruction_adds_up() -> None:
    message = TOY.replace('source = "made up"', 'dots = ["uint8*int8"]\nsource = "made up"', 1)
    core = read_target(message, "toy.toml").core

    assert core is not None
    assert core.dots == ("uint8*int8",)
    with pytest.raises(TargetError) as caught:
        read_target(message.replace("uint8*int8", "int4*int4"), "toy.toml")
    assert diagnostic(caught.value) == (
        Diagnostic(
            "target", source="toy.toml", line=":10", section="[core]: ", key="dots",
            subject="pair of types", value="int4*int4", hint="did you mean `int8*int8`?",
        )
    )


def test_caches_are_read_from_the_system(tmp_path: Path) -> None:
    described = [("Data", "1", "48K"), ("Instruction", "1", "32K"), ("Unified", "2", "2M")]
    for k, lines in enumerate(described):
        entry = tmp_path / f"index{k}"
        entry.mkdir()
        for name, text in zip(("type", "level", "size"), lines, strict=True):
            (entry / name).write_text(f"{text}\n")

    assert host_caches(tmp_path) == (48 * 1024, 2 * 1024 * 1024)
    assert len(host_caches(tmp_path / "none")) == 3


def test_a_target_without_a_core() -> None:
    text = TOY[: TOY.index("[core]")] + TOY[TOY.index("[memory") :]

    assert read_target(text, "toy.toml").core is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("vector_bytes = 32", 'vector_bytes = "wide"',
         Diagnostic(
             "target", source="toy.toml", line=":7", section="[core]: ", key="vector_bytes",
             value="wide", expected='a whole number of bytes, from 1 to 65536, or "host"',
         )),
        ("vector_bytes = 32", "vector_bytes = 0",
         Diagnostic(
             "target", source="toy.toml", line=":7", section="[core]: ", key="vector_bytes",
             value=0, expected='a whole number of bytes, from 1 to 65536, or "host"',
         )),
        ("[1024, 4096]", "[]",
         Diagnostic(
             "target", source="toy.toml", line=":9", section="[core]: ", key="cache_bytes",
             value=[], expected='a list of whole numbers of bytes, at least 1, or "host"',
         )),
        ("vector_registers = 16\n", "", Diagnostic(
            "target", source="toy.toml", line=":5", section="[core]: ",
            keys='`vector_registers` (a whole number, from 1 to 4096, or "host")', pronoun="it",
        )),
        ("vector_bytes = 32", "vector_byte = 32",
         Diagnostic(
             "target", source="toy.toml", line=":7", section="[core]: ", key="vector_byte",
             hint_of_key="did you mean `vector_bytes`?",
         )),
        ('source = "made up"\n\n', "\n", Diagnostic(
            "target", source="toy.toml", line=":5", section="[core]: ", keys="`source` (a text)",
            pronoun="it",
        )),
    ],
    ids=["text", "zero", "none", "missing", "typo", "source"],
)
def test_mistakes_are_named(old: str, new: str, expected: Diagnostic) -> None:
    with pytest.raises(TargetError) as error:
        read_target(TOY.replace(old, new, 1), "toy.toml")

    assert diagnostic(error.value) == expected

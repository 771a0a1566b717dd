"""Complete target descriptions: every table, every error, and overridden values."""

from __future__ import annotations

from pathlib import Path

import pytest

import tecomp
from tecomp.errors import TargetError
from tecomp.machine import (
    LaneReduction,
    Limits,
    Link,
    MatmulUnit,
    SharedLanes,
    Target,
    Tile,
    VectorUnit,
    lines_of,
    read_target,
    table_of,
)
from tests.messages import Diagnostic, diagnostic

TARGETS = Path(__file__).parents[2] / "targets"
TOY = '''name = "toy"
description = "a machine"
clock_hz = 1e9

[code]
kind = "functional"

[grid]
core.y = 2
core.x = 4

[stick]
bytes = 128
padding = "all"
source = "assumed"

[tile]
rows = 32
columns = 32
face_rows = 16
face_columns = 16
allowed = [[16, 32], [32, 32]]
source = "assumed"

[formats]
float32 = ["float32", "bfloat16"]

[memory.global]
scope = "host"
rank = 1
alignment_bytes = 64
source = "assumed"

[memory.lx]
scope = "core"
rank = 1
alignment_bytes = 128
capacity_bytes = 4096
reserved_bytes = 96
instances = 2
source = "assumed"

[link.dma]
from = "global"
to = "lx"
scope = "core"
bytes_per_cycle = 32
source = "assumed"

[engine.matmul]
kind = "matmul"
m = 32
n = 32
k = 32
inputs = ["bfloat16"]
accumulator = "float32"
a = ["m", "k"]
b = ["k//2", "n", "k%2"]
c = ["m", "n"]
cycles = { high = 64, low = 16 }
memory = "lx"
source = "assumed"

[engine.lanes]
kind = "vector"
width_bytes = 128
types = ["float32", "float16"]
cycles = { default = 1, exp = 4 }
memory = "lx"
source = "assumed"

[[rule]]
kind = "shared_lanes"
operation = "contraction"
operands = ["a", "b"]
by = "dimension"
source = "assumed"

[[rule]]
kind = "lane_reduction"
operation = "reduction"
result = "sparse"
source = "assumed"

[limits]
span_bytes = 65536
source = "assumed"
'''


def toy() -> Target:
    return read_target(TOY, "toy.toml")


def test_every_table_is_read() -> None:
    target = toy()

    assert (target.clock_hz, target.code.kind) == (1e9, "functional")
    assert (dict(target.grid), target.cores) == ({"core.y": 2, "core.x": 4}, 8)
    assert target.stick is not None
    assert (target.stick_bytes, target.stick.padding) == (128, "all")
    assert target.tile == Tile(32, 32, 16, 16, "assumed", ((16, 32), (32, 32)))
    assert target.formats == {"float32": ("float32", "bfloat16")}
    assert target.memory("lx").usable_bytes == 8000
    assert target.links == {"dma": Link("dma", "global", "lx", "core", 32.0, "assumed")}
    assert target.engine == {
        "matmul": MatmulUnit(
            "matmul", "matmul", 32, 32, 32, ("bfloat16",), "float32", ("m", "k"),
            ("k//2", "n", "k%2"), ("m", "n"), {"high": 64.0, "low": 16.0}, "lx", "assumed",
        ),
        "lanes": VectorUnit(
            "vector", "lanes", 128, ("float32", "float16"), {"default": 1.0, "exp": 4.0}, "lx",
            "assumed",
        ),
    }
    assert target.rules == (
        SharedLanes("shared_lanes", "contraction", ("a", "b"), "dimension", "assumed"),
        LaneReduction("lane_reduction", "reduction", "sparse", "assumed"),
    )
    assert target.limits == Limits("assumed", 65536)


def test_derived_attributes() -> None:
    target = toy()
    unit = target.engine["lanes"]

    assert target.tile is not None
    assert (target.tile.shape, target.tile.face) == ((32, 32), (16, 16))
    assert target.tile.shapes == ((32, 32), (16, 32))
    assert isinstance(unit, VectorUnit)
    assert [unit.lanes(name) for name in ("float32", "float16")] == [32, 64]


def test_cores_of_a_target_without_a_grid() -> None:
    assert toy().overridden(grid=None).cores == 1
    assert toy().overridden(
        grid=None,
        core={"count": 3, "vector_bytes": 32, "vector_registers": 8, "cache_bytes": [64],
              "source": "assumed"},
    ).cores == 3  # fmt: skip


def test_a_target_without_sticks() -> None:
    with pytest.raises(TargetError) as error:
        _ = toy().overridden(stick=None).stick_bytes

    assert diagnostic(error.value) == Diagnostic("unsupported-by-target", name="toy")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("clock_hz = 1e9", "clock_ghz = 1",
         Diagnostic(
             "target", source="toy.toml", line=":3", section="", key="clock_ghz",
             hint_of_key="did you mean `clock_hz`?",
         )),
        ("clock_hz = 1e9", "clock_hz = inf",
         Diagnostic(
             "target", source="toy.toml", line=":3", section="", key="clock_hz", value="inf",
             expected='a number of hertz, above 0, or "host"',
         )),
        ('kind = "functional"', 'kind = "real"',
         Diagnostic(
             "target", source="toy.toml", line=":6", section="[code]: ", key="kind",
             value="real", expected="'host' or 'functional'",
         )),
        ("core.y = 2", "row = 2",
         Diagnostic(
             "target", source="toy.toml", line=":9", section="[grid]: ", name="row",
             key_marks="a name such as core.x",
         )),
        ("core.y = 2", "core.y = 0",
         Diagnostic(
             "target", source="toy.toml", line=":9", section="[grid]: ", key="core.y", value=0,
             expected='a whole number, from 1 to 1048576, or "host"',
         )),
        ("core.y = 2", f"core.y = {2**62}",
         Diagnostic(
             "target", source="toy.toml", line=":9", section="[grid]: ", key="core.y",
             value=4611686018427387904, expected='a whole number, from 1 to 1048576, or "host"',
         )),
        ("core.y = 2", f"core.y = {2**18 + 1}",
         Diagnostic(
             "target", source="toy.toml", line="", section="",
             reason="target toy has 1048580 cores; at most 1048576 are supported",
         )),
        ("clock_hz = 1e9", f"clock_hz = {'9' * 30}",
         Diagnostic(
             "target", source="toy.toml", line=":3", section="", key="clock_hz", value=999999999999999999999999999999,
         )),
        ("clock_hz = 1e9", f"clock_hz = {'9' * 5000}",
         Diagnostic("target", source="toy.toml", line=":3")),
        ("clock_hz = 1e9", f"clock_hz = 0x{'f' * 5000}",
         Diagnostic(
             "target", source="toy.toml", line=":3", section="", key="clock_hz",
             value="<int of 20,000 bits>",
         )),
        ("clock_hz = 1e9", f"clock_hz = {'[' * 5000}",
         Diagnostic("target", source="toy.toml")),
        ("[grid]", f"[grid{'.a' * 5000}]",
         Diagnostic("target", source="toy.toml")),
        ("rank = 1", "rank = 9",
         Diagnostic(
             "target", source="toy.toml", line=":30", section="[memory.global]: ", key="rank",
             value=9, expected="a whole number, from 1 to 8",
         )),
        ("m = 32", "m = 100_000",
         Diagnostic(
             "target", source="toy.toml", line=":52", section="[engine.matmul]: ", key="m",
             value=100000, expected="a whole number, from 1 to 65536",
         )),
        ("face_rows = 16", "face_rows = 12",
         Diagnostic(
             "target", source="toy.toml", line=":17", section="[tile]: ",
             reason="a tile of 32x32 is not divisible into faces of 12x16; use faces that divide it",
         )),
        ("[[16, 32], [32, 32]]", "[[16, 32, 1]]",
         Diagnostic(
             "target", source="toy.toml", line=":22", section="[tile]: ", key="allowed",
             value="[[16, 32, 1]]",
             expected="a list of lists of 2 whole numbers, from 1 to 65536",
         )),
        ('float32 = ["float32", "bfloat16"]', 'floa32 = ["float32"]',
         Diagnostic(
             "target", source="toy.toml", line=":26", section="[formats]: ", key="floa32",
             subject="type", value="floa32", hint="did you mean `float32`?",
         )),
        ('float32 = ["float32", "bfloat16"]', 'float32 = "bfloat16"',
         Diagnostic(
             "target", source="toy.toml", line=":26", section="[formats]: ", key="float32",
             value="bfloat16", expected="a list of texts",
         )),
        ('to = "lx"', 'to = "lxx"',
         Diagnostic(
             "target", source="toy.toml", line=":45", section="[link.dma]: ", key="to",
             table="memory", value="lxx", hint="did you mean `lx`?",
         )),
        ("bytes_per_cycle = 32", 'bytes_per_cycle = "32 B"',
         Diagnostic(
             "target", source="toy.toml", line=":47", section="[link.dma]: ",
             key="bytes_per_cycle", value="32 B",
             expected="a number of bytes per cycle, above 0",
         )),
        ('"k//2", "n", "k%2"', '"k/2", "n"',
         Diagnostic(
             "target", source="toy.toml", line=":58", section="[engine.matmul]: ", key="b",
             value=['k/2', 'n'],
             expected="a list of texts: m, n, k or a part of one such as k//4 and k%4",
         )),
        ('inputs = ["bfloat16"]', 'inputs = ["bf16"]',
         Diagnostic(
             "target", source="toy.toml", line=":55", section="[engine.matmul]: ", key="inputs",
             subject="type", value="bf16", hint="did you mean `bfloat16`?",
         )),
        ("cycles = { high = 64, low = 16 }", "cycles = { high = 64, low = 0 }",
         Diagnostic(
             "target", source="toy.toml", line=":60", section="[engine.matmul.cycles]: ",
             key="low", value=0, expected="a number, above 0",
         )),
        ('kind = "vector"', 'kind = "vectors"',
         Diagnostic(
             "target", source="toy.toml", line=":65", section="[engine.lanes]: ",
             chosen="vectors", suggestion="did you mean `vector`?",
         )),
        ('kind = "vector"\n', "",
         Diagnostic(
             "target", source="toy.toml", line=":64", section="[engine.lanes]: ",
             by_name="matmul, vector",
         )),
        ('kind = "lane_reduction"', 'kind = "lanes"',
         Diagnostic(
             "target", source="toy.toml", line=":80", section="[[rule]] 2: ", chosen="lanes",
             suggestion="did you mean `lane_access`?",
         )),
        ('result = "sparse"', 'result = "spars"',
         Diagnostic(
             "target", source="toy.toml", line=":82", section="[[rule]] 2: ", key="result",
             value="spars", expected="'sparse', 'dense' or 'refused'",
         )),
        ('operands = ["a", "b"]', 'operands = ["a", "d"]',
         Diagnostic(
             "target", source="toy.toml", line=":75", section="[[rule]] 1: ", key="operands",
             value=['a', 'd'], expected="a list of 'a', 'b', 'inputs' or 'out'",
         )),
        ('by = "dimension"', "bi = 1",
         Diagnostic(
             "target", source="toy.toml", line=":76", section="[[rule]] 1: ", key="bi",
             hint_of_key="the keys are kind, operation, operands, by, source, axis, absent, exchange",
         )),
        ("[stick]", "[rule]",
         Diagnostic(
             "target", source="toy.toml", line=":72", subject="Cannot overwrite a value, column 7",
         )),
        ("[limits]\nspan_bytes = 65536", "[[limits]]\nspan_bytes = 65536",
         Diagnostic(
             "target", source="toy.toml", line=":85", section="[limits]: ",
             table="[{'span_bytes': 65536, 'source': 'assumed'}]",
         )),
    ],
    ids=str.split("clock-unit clock-inf code axis cores cores-64 cores-all clock-64 clock-digits "
                  "clock-hex clock-nested grid-nested rank m faces allowed format-type format-list link "
                  "rate operand type cycles engine no-kind rule result operands rule-key twice "
                  "array"),
)
def test_mistakes_are_named(old: str, new: str, expected: Diagnostic) -> None:
    assert old in TOY

    with pytest.raises(TargetError) as error:
        read_target(TOY.replace(old, new, 1), "toy.toml")

    assert diagnostic(error.value) == expected


def test_lines_of_texts_on_several_lines() -> None:
    text = 'a = """\nb = 1\n"""\n"c d" = [\n  1,\n]\n  [e . "f.g"] # here\nh.i = 2\n'

    assert lines_of(text) == {
        ("a",): 1, ("c d",): 4, ("e",): 7, ("e", "f.g"): 7, ("e", "f.g", "h"): 8,
        ("e", "f.g", "h", "i"): 8, ("e", "f.g", "h.i"): 8,
    }  # fmt: skip


def test_values_are_overridden() -> None:
    target = toy()
    other = target.overridden(
        grid={"core.x": 8}, memory={"lx": {"reserved_bytes": None}}, description="another"
    )

    assert (dict(other.grid), other.description) == ({"core.y": 2, "core.x": 8}, "another")
    assert other.memory("lx").usable_bytes == 8192
    assert other.overridden(
        grid={"core.x": 4}, memory={"lx": {"reserved_bytes": 96}}, description="a machine"
    ) == target


def test_the_host_is_overridden() -> None:
    cpu = tecomp.Target.load("cpu", core={"count": 5, "vector_bytes": 16}, grid={"core.x": 5})

    assert cpu.core is not None
    assert (cpu.core.count, cpu.core.vector_bytes, cpu.cores) == (5, 16, 5)
    assert cpu.core.cache_bytes == tecomp.Target.load("cpu").core.cache_bytes  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"memory": {"lx": {"capacity_kib": 4}}},
         Diagnostic(
             "target", source="target toy, overridden", line="", section="[memory.lx]: ",
             key="capacity_kib", hint_of_key="did you mean `capacity_bytes`?",
         )),
        ({"clock_hz": "1 GHz"},
         Diagnostic(
             "target", source="target toy, overridden", line="", section="", key="clock_hz",
             value="1 GHz", expected='a number of hertz, above 0, or "host"',
         )),
        ({"memory": None},
         Diagnostic(
             "target", source="target toy, overridden", line="", section="",
             keys="`memory` (a table [memory])", pronoun="it",
         )),
    ],
    ids=str.split("unit type missing"),
)
def test_overrides_that_are_none(tables: dict[str, object], expected: Diagnostic) -> None:
    with pytest.raises(TargetError) as error:
        toy().overridden(**tables)

    assert diagnostic(error.value) == expected


@pytest.mark.parametrize("path", sorted(TARGETS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_target_matches_its_table(path: Path) -> None:
    target = Target.load(path)

    assert target.overridden() == target
    assert set(table_of(target)) >= {"name", "description", "memory"}


def test_constructed_targets_can_be_overridden() -> None:
    plain = Target("plain", "", toy().memories, tecomp.Core(1, 16, 8, (64,)))

    changed = plain.overridden(core={"count": 2})

    assert changed.core == tecomp.Core(2, 16, 8, (64,), "not said")


def test_the_numbers_of_shipped_targets() -> None:
    """Values that are derived from other values match the published figures."""
    stick = Target.load("stick128")
    small, large = (Target.load(name) for name in ("tensix_wh", "tensix_bh"))
    unit = stick.engine["matmul"]

    assert isinstance(unit, MatmulUnit)
    assert stick.clock_hz is not None
    products = unit.m * unit.n * unit.k * unit.instances * stick.cores / unit.cycles["exact"]
    assert 2 * products * stick.clock_hz == 98.304e12
    assert stick.memory("lx").usable_bytes == 2_031_616
    assert [t.cores for t in (stick, small, large)] == [32, 64, 130]
    assert small.memory("dram").usable_bytes == 12 * 2**30
    assert large.memory("l1").usable_bytes == 1_572_864 - 98_304
    for target in (small, large):
        matmul = target.engine["matmul"]
        assert isinstance(matmul, MatmulUnit)
        assert matmul.cycles == {"hifi4": 64, "hifi3": 48, "hifi2": 32, "lofi": 16}

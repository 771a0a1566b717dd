"""Target descriptions: the shipped ones, every error, and buffer restrictions."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from tecomp.errors import CapacityError, TargetError, TypeMismatchError
from tecomp.ir import FLOAT32, SCALARS, Buffer
from tecomp.machine import Target, list_targets, read_target, registry
from tests.messages import Diagnostic, diagnostic

TARGETS = Path(__file__).parents[2] / "targets"
CPU = Target.load(TARGETS / "cpu.toml")
TOY = '''name = "toy"
description = "a machine"

[memory.dram]
scope = "chip"
rank = 1
alignment_bytes = 64
source = "assumed"

[memory."on.chip"]
scope = "core"
rank = 2
alignment_bytes = 128
capacity_bytes = 2_097_152
source = "assumed"
'''


def test_cpu() -> None:
    assert CPU.name == "cpu"
    assert {name: memory.rank for name, memory in CPU.memories.items()} == {
        "global": 1,
        "global.texture": 2,
        "global.stream": 1,
        "shared": 1,
        "local": 1,
    }


@pytest.mark.parametrize("path", sorted(TARGETS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_targets_load(path: Path) -> None:
    target = Target.load(str(path))

    assert target.name == path.stem
    assert all(memory.source for memory in target.memories.values())


def test_shipped_targets() -> None:
    names = {path.stem for path in TARGETS.glob("*.toml")}

    assert names == {*list_targets()}


def test_capacity() -> None:
    toy = read_target(TOY, "toy.toml")

    assert toy.memory("dram").capacity_bytes is None
    assert toy.memory("on.chip").capacity_bytes == 2 * 1024 * 1024


def test_a_buffer_larger_than_its_memory_is_refused() -> None:
    toy = read_target(TOY, "toy.toml")
    fits = Buffer("A", (1024, 512), FLOAT32, "on.chip", axis_separators=(0,))
    larger = Buffer("A", (1024, 513), FLOAT32, "on.chip", axis_separators=(0,))

    assert toy.check_buffer(fits).name == "on.chip"
    with pytest.raises(CapacityError) as error:
        toy.check_buffer(larger)

    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", buffer="A", dtype="float32", shape="1024, 513", size=2101248,
            memory="on.chip", name="toy", usable=2097152,
        )
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("capacity_bytes", "capacity_byte",
         Diagnostic(
             "target", source="toy.toml", line=":14", section='[memory."on.chip"]: ',
             key="capacity_byte", hint_of_key="did you mean `capacity_bytes`?",
         )),
        ("capacity_bytes = 2_097_152", "capacity_kib = 2048",
         Diagnostic(
             "target", source="toy.toml", line=":14", section='[memory."on.chip"]: ',
             key="capacity_kib", hint_of_key="did you mean `capacity_bytes`?",
         )),
        ("alignment_bytes = 64", "hue = 64",
         Diagnostic(
             "target", source="toy.toml", line=":7", section="[memory.dram]: ", key="hue",
             hint_of_key="the keys are scope, rank, alignment_bytes, capacity_bytes, source, takes_flat, reserved_bytes, instances, read_bytes_per_cycle, write_bytes_per_cycle, latency_cycles, transaction_bytes, rows",
         )),
        ("rank = 1\nalignment_bytes = 64\n", "",
         Diagnostic(
             "target", source="toy.toml", line=":4", section="[memory.dram]: ",
             keys="`rank` (a whole number, from 1 to 8), `alignment_bytes` (a whole number of bytes, a power of two)",
             pronoun="them",
         )),
        ('name = "toy"', "", Diagnostic(
            "target", source="toy.toml", line="", section="", keys="`name` (a text)",
            pronoun="it",
        )),
        ("rank = 1", "rank = true",
         Diagnostic(
             "target", source="toy.toml", line=":6", section="[memory.dram]: ", key="rank",
             value=True, expected="a whole number, from 1 to 8",
         )),
        ("rank = 1", "rank = 0",
         Diagnostic(
             "target", source="toy.toml", line=":6", section="[memory.dram]: ", key="rank",
             value=0, expected="a whole number, from 1 to 8",
         )),
        ("capacity_bytes = 2_097_152", 'capacity_bytes = "2 MiB"',
         Diagnostic(
             "target", source="toy.toml", line=":14", section='[memory."on.chip"]: ',
             key="capacity_bytes", value="2 MiB",
             expected="a whole number of bytes, at least 1",
         )),
        ("alignment_bytes = 64", "alignment_bytes = 48",
         Diagnostic(
             "target", source="toy.toml", line=":7", section="[memory.dram]: ",
             key="alignment_bytes", value=48,
             expected="a whole number of bytes, a power of two",
         )),
        ('scope = "chip"', 'scope = "board"',
         Diagnostic(
             "target", source="toy.toml", line=":5", section="[memory.dram]: ", key="scope",
             value="board", expected="'host', 'chip' or 'core'",
         )),
        ('source = "assumed"', 'source = ""',
         Diagnostic(
             "target", source="toy.toml", line=":8", section="[memory.dram]: ", key="source",
             value="", expected="a text",
         )),
        ('name = "toy"', "name = toy",
         Diagnostic("target", source="toy.toml", line=":1", subject="Invalid value, column 8")),
        (TOY[TOY.index("[memory.dram]"):], "[memory]\n",
         Diagnostic("target", source="toy.toml", line=":4", section="[memory]: ")),
        (TOY[TOY.index("[memory.dram]"):], "[memory]\ndram = 1\n",
         Diagnostic("target", source="toy.toml", line=":5", section="[memory.dram]: ", table=1)),
        ("capacity_bytes = 2_097_152", "instances = 2",
         Diagnostic(
             "target", source="toy.toml", line=":10", section='[memory."on.chip"]: ',
             reason="memory `on.chip` has reserved_bytes or instances but no capacity_bytes; specify the capacity of one instance",
         )),
        ("capacity_bytes = 2_097_152", "capacity_bytes = 64\nreserved_bytes = 64",
         Diagnostic(
             "target", source="toy.toml", line=":10", section='[memory."on.chip"]: ',
             reason="memory `on.chip` reserves 64 of its 64 bytes; leave some bytes for programs",
         )),
    ],
    ids=str.split("typo unit unknown missing no-name bool rank capacity alignment scope source "
                  "syntax empty table instances reserved"),
)
def test_mistakes_are_named(old: str, new: str, expected: Diagnostic) -> None:
    assert old in TOY

    with pytest.raises(TargetError) as error:
        read_target(TOY.replace(old, new, 1), "toy.toml")

    assert diagnostic(error.value) == expected


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"

    with pytest.raises(TargetError) as error:
        Target.load(path)

    assert diagnostic(error.value) == Diagnostic(
        "target", path=str(path), reason=f"[Errno 2] No such file or directory: '{path}'",
    )


def test_buffers_of_the_right_rank() -> None:
    assert CPU.check_buffer(Buffer("A", (4, 4))).name == "global"
    texture = Buffer("B", (4, 4, 4), scope="global.texture", axis_separators=(1,))
    assert CPU.check_buffer(texture).rank == 2


def test_rows_and_runs_of_bytes_in_one_memory() -> None:
    target = Target.load("vtcm2d")
    for shape, separators in (((64,), ()), ((4, 64), (0,))):
        buffer = Buffer("A", shape, scope="global.vtcm", axis_separators=separators)
        assert target.check_buffer(buffer).takes_flat
    with pytest.raises(TargetError) as error:
        target.check_buffer(Buffer("A", (4, 4, 4), scope="global.vtcm", axis_separators=(0, 1)))
    assert diagnostic(error.value) == (
        Diagnostic(
            "unsupported-by-target", buffer="A", rank="3 physical axes", memory="global.vtcm",
            name="vtcm2d", axes="1 or 2 physical axes",
            remedy="use 1 AXIS_SEPARATOR in its layout instead of 2",
        )
    )


@pytest.mark.parametrize(
    ("buffer", "expected"),
    [
        (Buffer("A", (4, 4), axis_separators=(0,)),
         Diagnostic(
             "unsupported-by-target", buffer="A", rank="2 physical axes", memory="global", name="cpu",
             axes="1 physical axis",
             remedy='use 0 AXIS_SEPARATOR in its layout instead of 1, or set_scope("global.texture")',
         )),
        (Buffer("A", (4, 4), scope="global.texture"),
         Diagnostic(
             "unsupported-by-target", buffer="A", rank="1 physical axis", memory="global.texture",
             name="cpu", axes="2 physical axes",
             remedy='use 1 AXIS_SEPARATOR in its layout instead of 0, or set_scope("global")',
         )),
        (Buffer("A", (4, 4, 4), axis_separators=(0, 1)),
         Diagnostic(
             "unsupported-by-target", buffer="A", rank="3 physical axes", memory="global", name="cpu",
             axes="1 physical axis", remedy="use 0 AXIS_SEPARATOR in its layout instead of 2",
         )),
        (Buffer("A", (4,), scope="globl"),
         Diagnostic(
             "unsupported-by-target", buffer="A",
             problem="target cpu has no memory `globl`; did you mean `global`? its memories are global, global.texture, global.stream, shared, local",
         )),
        (Buffer("A", (4,), scope="Global"),
         Diagnostic(
             "unsupported-by-target", buffer="A",
             problem="target cpu has no memory `Global`; did you mean `global`? its memories are global, global.texture, global.stream, shared, local",
         )),
        (Buffer("A", (4,), scope="warp"),
         Diagnostic(
             "unsupported-by-target", buffer="A",
             problem="target cpu has no memory `warp`; its memories are global, global.texture, global.stream, shared, local",
         )),
    ],
    ids=str.split("two-for-one one-for-two three typo case unknown"),
)
def test_buffers_that_a_memory_does_not_take(buffer: Buffer, expected: Diagnostic) -> None:
    with pytest.raises(TargetError) as error:
        CPU.check_buffer(buffer)

    assert diagnostic(error.value) == expected


def offer(monkeypatch: pytest.MonkeyPatch, **paths: Path) -> None:
    """Replace the installed `tecomp.targets` entry points by the given descriptions."""

    class Offer(EntryPoint):
        def load(self) -> object:
            return lambda: [paths[self.name]]

    offers = EntryPoints(Offer(name, "x:y", "tecomp.targets") for name in paths)
    monkeypatch.setattr(registry, "entry_points", lambda group: offers.select(group=group))


def test_installed_targets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text(TOY)
    offer(monkeypatch, acme=tmp_path / "toy.toml", tecomp=TARGETS / "cpu.toml")

    assert list_targets() == ("cpu", "toy")
    assert Target.load("toy").name == "toy"
    with pytest.raises(TargetError) as error:
        Target.load("toi")
    assert diagnostic(error.value) == (
        Diagnostic(
            "unknown-target", name="toi", hint="did you mean `toy`? ", known="cpu, toy",
            others="",
        )
    )


def test_the_name_that_tvm_has_for_a_processor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert Target.load("llvm") is Target.load("cpu")
    (tmp_path / "llvm.toml").write_text(TOY.replace('"toy"', '"llvm"'))
    offer(monkeypatch, acme=tmp_path / "llvm.toml", tecomp=TARGETS / "cpu.toml")

    assert Target.load("llvm").description == "a machine"
    with pytest.raises(TargetError) as error:
        Target.load("llvm -mcpu=core-avx2")
    assert diagnostic(error.value) == (
        Diagnostic(
            "unknown-target", name="llvm -mcpu=core-avx2",
            hint="code is compiled for the host CPU, so use `llvm` without options; ",
            known="cpu, llvm", others="",
        )
    )


def test_targets_that_are_installed_later_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "toy" not in list_targets()
    info = tmp_path / "acme-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tecomp.targets]\nacme = acme_targets:paths\n")
    (tmp_path / "toy.toml").write_text(TOY)
    (tmp_path / "acme_targets.py").write_text(
        f"def paths():\n    return [{str(tmp_path / 'toy.toml')!r}]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    assert "toy" in list_targets()
    assert Target.load("toy").description == "a machine"
    (tmp_path / "toy.toml").write_text(TOY.replace("a machine", "another machine"))
    assert Target.load("toy").description == "another machine"
    (info / "entry_points.txt").unlink()
    info.joinpath("METADATA").unlink()
    info.rmdir()
    assert "toy" not in list_targets()


def test_loading_a_target_again_reads_no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = []

    def find(group: str) -> EntryPoints:
        requested.append(group)
        return EntryPoints([EntryPoint("x", "tecomp.targets:descriptions", group)])

    monkeypatch.setattr(registry, "entry_points", find)

    assert [Target.load("cpu").name for _ in range(3)] == ["cpu"] * 3
    assert requested == ["tecomp.targets"]


def test_a_name_that_two_packages_offer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offer(monkeypatch, acme=tmp_path / "cpu.toml", tecomp=TARGETS / "cpu.toml")

    with pytest.raises(TargetError) as error:
        Target.load("cpu")

    assert diagnostic(error.value) == (
        Diagnostic("plugin", name="cpu", owners="`acme` and by `tecomp`")
    )


def test_targets_without_installed_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch)

    with pytest.raises(TargetError) as error:
        Target.load("cpu")

    assert diagnostic(error.value) == (
        Diagnostic(
            "unknown-target", name="cpu", hint="",
            known="none (is tecomp installed? `pip install -e .`)", others="",
        )
    )


def test_a_memory_that_is_not_there() -> None:
    with pytest.raises(TargetError) as error:
        CPU.memory("sram")

    assert diagnostic(error.value) == (
        Diagnostic(
            "unsupported-by-target",
            problem="target cpu has no memory `sram`; its memories are global, global.texture, global.stream, shared, local",
        )
    )


@pytest.mark.parametrize("name", ["tensix_wh", "tensix_bh"])
def test_tiles_in_the_accumulator(name: str) -> None:
    """16 tiles of 16 bits fit, 8 of 32 bits, and half as many if one half is read meanwhile."""
    limits = Target.load(name).limits
    assert limits is not None

    types = ("bfloat16", "float16", "uint8", "float32", "int32", "float64")
    assert [limits.tiles_at_once(dtype, is_halved=False) for dtype in types] == [16, 16, 16, 8, 8, 0]
    assert [limits.tiles_at_once(dtype) for dtype in types] == [8, 8, 8, 4, 4, 0]
    sticks = Target.load("stick128").limits
    assert sticks is not None
    assert sticks.tiles_at_once("float32") is None
    with pytest.raises(TypeMismatchError) as error:
        limits.tiles_at_once("x")
    assert diagnostic(error.value) == Diagnostic(
        "dtype", name="x",
        scalars=", ".join(SCALARS),
    )

"""The tuning database: keys, records, several writers, damaged files, and files of records."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tecomp
from tecomp import CacheError, Choices, Target, te, topi
from tecomp.driver import SchedulingProblem, TuningTrial
from tecomp.schedules import auto
from tecomp.tuning import TuningDatabase, TuningRecord, key_of
from tests.messages import Diagnostic, diagnostic

CPU = Target.of("cpu")


def product(m: int, n: int, name: str = "C", axis: str = "k") -> tuple[list[te.Tensor], te.Tensor]:
    A, B = te.placeholder((m, 16), name=f"{name}_a"), te.placeholder((16, n), name=f"{name}_b")
    k = te.reduce_axis((0, 16), name=axis)
    return [A, B], te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name=name)


def key(output: te.Tensor, target: Target = CPU) -> Any:
    found = key_of(SchedulingProblem((output,), target))
    assert found is not None
    return found


def record(name: str = "C", cost: float = 1.0, when: float = 1.0, size: int = 8) -> TuningRecord:
    return TuningRecord(
        name, "machine", "structure", (size, 4), "main", "cpu (x)", {"2.tile_rows": 4}, cost, 2.0,
        "seconds", "user@host", when)


def test_keys_depend_on_the_definition_and_not_on_names() -> None:
    one, same, other = product(8, 24), product(8, 24, "D", "r"), product(8, 32)

    assert key(one[1]) == key(same[1])
    assert key(one[1]).definition != key(other[1]).definition
    assert key(one[1]).structure == key(other[1]).structure
    assert key(one[1]).machine != key(one[1], Target.load("stick128")).machine
    assert key(topi.add(one[0][0], 1.0)).structure != key(one[1]).structure


def test_the_lower_cost_stays_unless_the_tuner_measured_both(tmp_path: Path) -> None:
    with TuningDatabase(tmp_path / "t.sqlite", create=True) as database:
        assert database.add([record(cost=2.0, when=10.0)]) == 1
        assert database.add([record(cost=3.0, when=11.0)]) == 0
        assert database.add([record(cost=1.0, when=12.0)]) == 1
        assert database.add([record(cost=4.0, when=14.0)], since=13.0) == 1
        assert [one.cost for one in database.records()] == [4.0]


def test_nearby_records_are_sorted_by_their_sizes(tmp_path: Path) -> None:
    with TuningDatabase(tmp_path / "t.sqlite", create=True) as database:
        for m, n in ((8, 512), (8, 32), (64, 24)):
            found = key(product(m, n)[1])
            database.add([replace(
                record(str(n)), key=found.definition, machine=found.machine,
                structure=found.structure, sizes=found.sizes, name=f"{m}x{n}")])

        nearby = database.nearby(key(product(8, 24)[1]), 2)

    assert [one.name for one in nearby] == ["8x32", "64x24"]


def test_several_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"

    def write(writer: int) -> None:
        with TuningDatabase(path, create=True) as database:
            for k in range(15):
                trial = TuningTrial(
                    f"{writer}", "machine", {"knob": k}, "slower", 1.5, "", "user", float(k))
                database.add([record(f"{writer} {k}")], [trial])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))

    with TuningDatabase(path) as database:
        assert len(database.records()) == 60
        assert len(database.trials()) == 60
        assert [trial.choices["knob"] for trial in database.trials("2", "machine")] == [*range(15)]


@pytest.mark.exhaustive
def test_several_processes_lose_nothing(tmp_path: Path) -> None:
    script = (
        "import sys; from tests.tuning.test_database import record\n"
        "from tecomp.tuning import TuningDatabase\n"
        "with TuningDatabase(sys.argv[1], create=True) as database:\n"
        "    for k in range(20): database.add([record(f'{sys.argv[2]} {k}')])\n"
    )
    path = tmp_path / "t.sqlite"
    root = Path(__file__).parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(path), str(k)], cwd=root)
        for k in range(3)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]

    with TuningDatabase(path) as database:
        assert len(database.records()) == 60


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be read" * 40, b"x"])
def test_a_damaged_file_is_an_error_and_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(content)
    inputs, output = product(8, 8)

    for use in (
        lambda: TuningDatabase(path, create=True),
        lambda: tecomp.build(output, [*inputs, output], database=path),
        lambda: tecomp.tune(output, [*inputs, output], trials=1, database=path),
    ):
        with pytest.raises(CacheError) as error:
            use()
        found = diagnostic(error.value)
        assert (found.kind, found.parameters["path"]) == ("tuning-database", str(path))

    assert path.read_bytes() == content


def test_another_sqlite_file_is_an_error_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mail (text)")

    with pytest.raises(CacheError) as error:
        TuningDatabase(path, create=True)

    assert diagnostic(error.value) == Diagnostic(
        "tuning-database", path=path, reason="it is another kind of file, or of another version")
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("mail",)]


def test_a_missing_database_that_is_passed_is_an_error(tmp_path: Path) -> None:
    inputs, output = product(8, 8)

    with pytest.raises(CacheError) as error:
        tecomp.build(output, [*inputs, output], database=tmp_path / "none")

    assert diagnostic(error.value) == Diagnostic(
        "tuning-database", where="build", path=tmp_path / "none")


def test_files_of_records_are_merged(tmp_path: Path) -> None:
    trial = TuningTrial("C", "machine", {"knob": "a"}, "failed", None, "crash", "user", 3.0)
    with TuningDatabase(tmp_path / "one", create=True) as one:
        one.add([record("C", 1.0), record("D", 3.0)], [trial])
        assert one.export(tmp_path / "records.json") == 2
    with TuningDatabase(tmp_path / "two", create=True) as two:
        two.add([record("C", 2.0), record("D", 2.5), record("E", 1.0)])

        assert two.merge(tmp_path / "records.json") == 1
        assert {found.key: found.cost for found in two.records()} == {"C": 1.0, "D": 2.5, "E": 1.0}
        assert two.trials() == [trial]


@pytest.mark.parametrize("change", [
    {"format": "other"}, {"records": 3}, {"records": [{"key": 1}]},
    {"records": [{"cost": float("nan")}]}, {"trials": [{}]},
])  # fmt: skip
def test_other_files_are_not_merged(tmp_path: Path, change: dict[str, Any]) -> None:
    with TuningDatabase(tmp_path / "t.sqlite", create=True) as database:
        database.add([record()])
        database.export(tmp_path / "records.json")
        content = json.loads((tmp_path / "records.json").read_text())
        for name, value in change.items():
            is_row = isinstance(value, list) and value and name == "records"
            content[name] = [{**content[name][0], **value[0]}] if is_row else value
        (tmp_path / "records.json").write_text(json.dumps(content))

        with pytest.raises(CacheError) as error:
            database.merge(tmp_path / "records.json")

        assert diagnostic(error.value).parameters["path"] == str(tmp_path / "records.json")
        assert len(database.records()) == 1


def stored(path: Path, output: te.Tensor, choices: dict[str, Any]) -> None:
    """Record choices of a program."""
    found = key(output)
    with TuningDatabase(path, create=True) as database:
        database.add([replace(
            record(), key=found.definition, machine=found.machine, structure=found.structure,
            sizes=found.sizes, choices=choices)])


def test_builds_and_programs_use_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, output = product(64, 64)
    path, choices = tmp_path / "t.sqlite", {"2.tile_rows": 2, "2.tile_vectors": 1}
    stored(path, output, choices)
    expected = str(Choices(choices).run(auto, output, "cpu").trace)
    usual = str(auto(output, "cpu").trace)

    assert expected != usual
    assert str(tecomp.build(output, [*inputs, output]).schedule.trace) == usual
    kernel = tecomp.build(output, [*inputs, output], database=path)
    assert str(kernel.schedule.trace) == expected
    monkeypatch.setenv("TECOMP_TUNING", str(path))
    assert str(tecomp.build(output, [*inputs, output]).schedule.trace) == expected
    program: Any = tecomp.compile(output, inputs)
    assert str(program.kernels[0].kernel.build.schedule.trace) == expected
    monkeypatch.setenv("TECOMP_TUNING", "off")
    assert str(tecomp.build(output, [*inputs, output]).schedule.trace) == usual


def test_records_are_part_of_the_key_of_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path / "cache"))
    inputs, output = product(64, 48)
    usual = tecomp.build(output, [*inputs, output]).compiled.source
    stored(tmp_path / "t.sqlite", output, {"2.tile_rows": 2})

    tuned = tecomp.build(output, [*inputs, output], database=tmp_path / "t.sqlite")

    assert tuned.schedule.trace.to_python() == Choices({"2.tile_rows": 2}).run(
        auto, output, "cpu").trace.to_python()
    assert tecomp.build(output, [*inputs, output]).compiled.source == usual


def test_a_build_without_a_database_loads_nothing_of_it(tmp_path: Path) -> None:
    script = (
        "import sys, tecomp; from tecomp import te\n"
        "A = te.placeholder((8,), name='A'); B = te.compute((8,), lambda i: A[i] + 1.0, name='B')\n"
        "tecomp.build(B, [A, B])\n"
        "assert not {'sqlite3', 'tecomp.tuning', 'multiprocessing'} & set(sys.modules)\n"
    )
    environment = {"TECOMP_TUNING": str(tmp_path / "none")}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, check=False)

    assert done.returncode == 0


def test_files_of_others_are_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CacheError):
        TuningDatabase(path, create=True)
    assert path.read_bytes() == before

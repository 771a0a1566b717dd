"""`tecomp tune`: scripts and models, tables of records, files of records, and failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tecomp
from tecomp import te
from tecomp.cli import main
from tecomp.tuning import TuningDatabase
from tests.tuning.test_database import record

SCRIPT = """
import tecomp
from tecomp import te

A = te.placeholder((64, 64), name="A")
k = te.reduce_axis((0, 64), name="k")
B = te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="B")
tensors = (B, [A, B])
wrong = 3


def schedule():
    A = te.placeholder((256,), name="A")
    B = te.compute((256,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B)
    _, lane = s[B].split(B.op.axis[0], factor=tecomp.knob("lanes", [1, 8]))
    s[B].vectorize(lane)
    return s, [A, B]
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def run(tmp_path: Path, *words: object) -> Result:
    options = ["--database", str(tmp_path / "tuning.sqlite")]
    return CliRunner().invoke(main, ["tune", *map(str, words), *options])


def output(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ["tensors", "schedule"])
def test_a_script_is_tuned_and_shown(tmp_path: Path, script: Path, name: str) -> None:
    found = output(run(tmp_path, f"{script}:{name}", "--trials", 1, "--json"))
    shown = output(run(tmp_path, "show", "--json"))

    assert found["gain"] >= 1
    assert len(found["kernels"]) == len(shown["records"]) == 1
    assert shown["records"][0]["candidates"] == sum(found["kernels"][0]["candidates"].values()) == 1
    assert "times as fast" in run(tmp_path, f"{script}:{name}", "--trials", 1).stdout
    assert "author" in run(tmp_path, "show").stdout


@pytest.mark.exhaustive
def test_a_record_of_a_script_is_found_by_build(tmp_path: Path, script: Path) -> None:
    output(run(tmp_path, f"{script}:schedule", "--trials", 1, "--json"))
    names: dict[str, Any] = {}
    exec(script.read_text(), names)
    with TuningDatabase(tmp_path / "tuning.sqlite") as database:
        (record,) = database.records()

    kernel = tecomp.build(names["schedule"], database=tmp_path / "tuning.sqlite")

    lanes = kernel.schedule.stages[-1].leaf_iter_vars[-1].extent
    assert lanes == record.choices.get("lanes", 1)


@pytest.mark.exhaustive
def test_a_model_is_tuned(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(n, floats, [8, 8]) for n in "xy")
    w = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")

    found = output(run(tmp_path, tmp_path / "model.onnx", "--trials", 1, "--json"))

    assert len(found["kernels"]) == 1


def test_records_are_exported_and_merged(tmp_path: Path) -> None:
    with TuningDatabase(tmp_path / "tuning.sqlite", create=True) as database:
        database.add([record("C"), record("D")])
    file = tmp_path / "records.json"

    assert output(run(tmp_path, "--export", file, "--json"))["exported"] == 2
    (tmp_path / "tuning.sqlite").unlink()
    assert output(run(tmp_path, "--merge", file, "--json"))["merged"] == 2
    assert "0 records are new or better" in run(tmp_path, "--merge", file).stdout
    assert len(output(run(tmp_path, "show", "--json"))["records"]) == 2


@pytest.mark.parametrize("words", [
    (), ("missing.py:x",), ("missing.onnx",), ("show", "--seconds", "0"),
    ("show", "--seconds", "nan"), ("show", "--trials", "0"), ("show", "--search", "luck"),
    ("show", "--size", "n"), ("--merge", "missing.json"), ("{script}:nothing",),
    ("{script}:wrong",), ("{script}",),
])  # fmt: skip
def test_bad_values_end_with_2(tmp_path: Path, script: Path, words: tuple[str, ...]) -> None:
    result = run(tmp_path, *(word.format(script=script) for word in words))

    assert result.exit_code == 2, result.output


def test_failures_are_json_on_request(tmp_path: Path) -> None:
    (tmp_path / "tuning.sqlite").write_text("not a database")

    result = run(tmp_path, "show", "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["kind"] == "tuning-database"
    text = run(tmp_path, "show")
    assert text.exit_code == 1
    assert "cannot be used" in text.output


def test_a_database_that_is_off_ends_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TECOMP_TUNING", "off")

    assert CliRunner().invoke(main, ["tune", "show"]).exit_code == 2


def test_a_schedule_of_te_is_a_pair(tmp_path: Path) -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")

    kernel = tecomp.build(lambda: (te.create_schedule(B), [A, B]))

    found = np.empty(8, np.float32)
    kernel(np.zeros(8, np.float32), found)
    np.testing.assert_array_equal(found, np.ones(8, np.float32))

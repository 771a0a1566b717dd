"""Commands that list targets and definitions of a script, as text and as JSON."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import tecomp
from tecomp import demo
from tecomp.cli import main, show
from tecomp.lowering import STAGES
from tecomp.ptensor import dist_to_runtime, lower_ptensor, parse_module

SCRIPT = """
import tecomp
from tecomp import te

A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
layout = tecomp.Layout.of((4, 8), "float32", lambda i, j: [j, i])
plain = (B, [A, B])


def by_hand():
    s = te.create_schedule(B)
    s[B].vectorize(B.op.axis[0])
    return s, [A, B]


def compiled():
    return tecomp.compile(B, [A])


def roofline():
    return tecomp.build(*by_hand()).roofline(measured=True, label="by hand")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def ran(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, [str(word) for word in words], prog_name="tecomp")
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.output


def test_doctor_passes_on_this_machine() -> None:
    status, output = ran("doctor", "--json")
    found = {row["check"]: row for row in json.loads(output)}

    assert status == 0
    assert all(row["ok"] for row in found.values())
    assert found["tecomp"]["result"].startswith(tecomp.__version__)
    assert re.fullmatch(
        r"compiled a kernel in \d+ ms; its results are correct", found["compiler"]["result"])
    rate = r"\w+ [\d.e+]+"
    assert re.fullmatch(
        rf"one core: (?:{rate}(?:, )?)+ Gop/s with vector instructions, (?:{rate}(?:, )?)+ Gop/s with "
        rf"scalar instructions; reads (?:{rate}(?:, )?)+ GB/s", found["rates"]["result"],
    )


def test_doctor_reports_failed_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TECOMP_CACHE", raising=False)
    monkeypatch.setenv("TECOMP_CACHE_SIZE", "much")
    status, output = ran("doctor", "--json")
    row = next(row for row in json.loads(output) if row["check"] == "cache")

    assert status == 1
    assert not row["ok"]
    assert "TECOMP_CACHE_SIZE" in row["result"]


def test_loops_after_any_pass(script: Path) -> None:
    status, nest = ran("lower", f"{script}:by_hand", "--stage", "nest")

    assert status == 0
    assert nest.splitlines()[1] == "    for i in vectorized(8):"
    assert "ramp(0, 1, 8)" in ran("lower", f"{script}:by_hand")[1]
    assert "# flatten_buffer\ndef main(" in ran("lower", f"{script}:plain", "--stage", "all")[1]
    assert "def schedule(B):" in ran("lower", f"{script}:plain", "--stage", "schedule")[1]
    assert "define" in ran("lower", f"{script}:plain", "--form", "llvm")[1]


PTENSOR = """func @f(%x: ptensor<8xfloat64, team=1>) -> ptensor<float64, team=1> {
  %y = ptensor.reduce{'sum'}(%x, axis=None, keepdims=False, correction=0, dtype=None): (ptensor<8xfloat64, team=1>) -> ptensor<float64, team=1>
  return %y
}
"""


def test_functions_on_arrays_after_each_pass_of_their_document(tmp_path: Path) -> None:
    path = tmp_path / "f.ptensor"
    path.write_text(PTENSOR, encoding="utf-8")
    lowered = lower_ptensor(parse_module(PTENSOR))

    assert ran("lower", path, "--stage", "lower-ptensor") == (0, f"{lowered}\n")
    assert ran("lower", path) == (0, f"{dist_to_runtime(lowered)}\n")
    assert "dist." in str(lowered)
    assert ran("lower", path, "--stage", "all") == (
        0, f"# lower-ptensor\n{lowered}\n\n# dist-to-intel-runtime\n{dist_to_runtime(lowered)}\n\n"
    )
    assert "dist." not in ran("lower", path, "--stage", "lower-ptensor", "--ignore-team")[1]
    assert [*json.loads(ran("lower", path, "--stage", "all", "--json")[1])] == [
        "lower-ptensor", "dist-to-intel-runtime",
    ]


def test_lower_rejects_invalid_ptensor_text(script: Path, tmp_path: Path) -> None:
    path, other = tmp_path / "f.txt", tmp_path / "bytes.txt"
    path.write_text("func @f(%x", encoding="utf-8")
    other.write_bytes(b"\xff")

    assert ran("lower", path) == (1, (
        f"Error: {path}: line 1, column 11: expected `:` and a type after the parameter name, "
        "got the end of the text\n"
    ))
    assert ran("lower", other)[1].startswith(f"Error: {other}: expected a text in UTF-8, got ")
    assert ran("lower", path, "--stage", "nest")[1].splitlines()[-1] == (
        "Error: Invalid value for --stage: nest is not a pass of ptensor functions; these are "
        "lower-ptensor, dist-to-intel-runtime"
    )
    assert ran("lower", path, "--form", "asm")[1].splitlines()[-1] == (
        "Error: Invalid value for --form: ptensor functions can be lowered to ir only"
    )
    assert ran("lower", f"{script}:plain", "--stage", "lower-ptensor")[1].splitlines()[-1] == (
        "Error: Invalid value for --stage: lower-ptensor is not a pass of schedules; these are "
        f"{', '.join(['schedule', *STAGES])}"
    )


def test_commands_reject_objects_that_are_no_programs(script: Path, tmp_path: Path) -> None:
    for words, complaint in (
        (f"{script}:layout", f"{script}:layout is Layout; expected a pair of a schedule or "
         "tensor and the list of arguments, as for tecomp.build, or a function that returns such a "
         "pair"),
        (f"{script}:C", f"{script} does not define `C`; it has A, B, by_hand, compiled, layout, "
         "plain, roofline"),
        (f"{tmp_path}/none.py:C", f"file not found: {tmp_path}/none.py"),
        ("script.py", "'script.py' is not a valid object; pass script.py:name"),
    ):
        status, output = ran("lower", words)

        assert (status, output.splitlines()[-1]) == (2, f"Error: Invalid value: {complaint}")


@pytest.mark.parametrize("command", ["lower", "viz"])
def test_script_errors_show_the_source_line(command: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("from tecomp import te\n\nA = te.placeholder((-1,))\n", encoding="utf-8")

    assert ran(command, f"{path}:A") == (1, (
        "Error: te.placeholder placeholder: axis 0 of the shape is -1; an extent must be at least 0\n"
        f"  at {path}:3\n"
        "    A = te.placeholder((-1,))\n"
        "        ^^^^^^^^^^^^^^^^^^^^^\n"
        "  TE0109: `tecomp explain TE0109` tells more\n"
    ))


def test_errors_outside_the_script_have_no_location(script: Path) -> None:
    assert ran("lower", f"{script}:plain", "--target", "cpo") == (1, (
        "Error: unknown target `cpo`; did you mean `cpu`? installed targets: "
        f"{', '.join(tecomp.list_targets())}; or pass the path of a TOML file\n"
    ))


def test_a_figure_of_a_script(script: Path, tmp_path: Path) -> None:
    status, output = ran("viz", f"{script}:layout", "-o", tmp_path / "layout.svg")

    assert (status, output) == (0, f"{tmp_path}/layout.svg\n")
    assert (tmp_path / "layout.svg").read_text().startswith("<svg")
    assert ran("viz", f"{script}:roofline", "-o", tmp_path / "roofline.svg")[0] == 0
    assert "by hand: " in (tmp_path / "roofline.svg").read_text()
    assert ran("viz", f"{script}:plain")[1].splitlines()[-1] == (
        f"Error: Invalid value: {script}:plain is tuple, which has no figure"
    )


def test_operators_are_measured() -> None:
    status, output = ran("bench", "add", "--size", 16, "--seconds", "0.01", "--json")
    rows = json.loads(output[output.index("[\n") :])

    assert status == 0
    assert [row["operator"] for row in rows] == ["add"]
    assert rows[0]["speedup"] > 0


@pytest.mark.parametrize("words", ["targets", "cache", "explain", "explain TE0201"])
def test_programs_read_json(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TECOMP_CACHE", raising=False)
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    status, output = ran(*words.split(), "--json")

    assert status == 0
    assert json.loads(output)


def test_programs_read_loops_and_where_pictures_are(script: Path, tmp_path: Path) -> None:
    plain = f"{script}:plain"
    functions = json.loads(ran("lower", plain, "--stage", "all", "--json")[1])
    picture = tmp_path / "layout.svg"

    assert [*functions] == list(STAGES)
    assert functions["nest"] + "\n" == ran("lower", plain, "--stage", "nest")[1]
    assert [*json.loads(ran("lower", plain, "--form", "asm", "--json")[1])] == ["asm"]
    assert json.loads(ran("viz", f"{script}:layout", "-o", picture, "--json")[1]) == {
        "picture": str(picture)
    }


def test_completion_lists_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, output = ran("new-target", "mine", "--json")
    files = json.loads(output)["files"]

    assert status == 0
    assert sorted(files) == sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize(("agree", "status"), [(True, 0), (False, 1)])
def test_demo_output_is_machine_readable(
    agree: bool, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(job: object, show: Callable[[str], None]) -> bool:
        show("a picture")
        return agree

    monkeypatch.setattr(demo, "run", shown)
    words = ["demo", "--output", str(tmp_path / "demo.png"), "--json"]
    done = CliRunner().invoke(main, words)

    assert done.exit_code == status
    assert json.loads(done.stdout) == {
        "target": "cpu", "agree": agree, "picture": f"{tmp_path}/demo.png", "text": ["a picture"],
    }


def test_check_output_is_machine_readable() -> None:
    checks = {check["title"]: check["passed"] for check in json.loads(ran("check-target", "cpu", "--json")[1])}

    assert checks["name matches the file name"]
    assert checks["kernel stores a tensor in `global`"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    status, output = ran("completion", shell)

    assert status == 0
    assert "_TECOMP_COMPLETE" in output


@pytest.mark.parametrize(("words", "offered"), [
    ("tecomp demo --target te", ["tensix_bh", "tensix_wh", "texture2d"]),
    ("tecomp lower x.py:f --target cp", ["cpu"]),
    ("tecomp check-target vt", ["vtcm2d"]),
    ("tecomp check-target mine.to", ["mine.to"]),  # a path, which the shell completes
    ("tecomp explain TE000", [f"TE000{k}" for k in range(1, 10)]),
    ("tecomp explain te0107", ["TE0107"]),
    ("tecomp explain index-ty", ["index-type"]),
    ("tecomp lower x.py:f --stage flat", ["flatten_buffer"]),
])
def test_shell_completion_of_arguments(words: str, offered: list[str]) -> None:
    *source, begun = words.split()[1:]

    found = ShellComplete(main, {}, "tecomp", "_TECOMP_COMPLETE").get_completions(source, begun)
    assert [item.value for item in found] == offered


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"name": "a", "ok": True, "count": 1000}, {"name": "long", "ok": False, "count": 2}])

    assert capsys.readouterr().out == (
        "name  ok   count\n"
        "a     yes  1,000\n"
        "long  no       2\n"
    )


@pytest.mark.exhaustive
def test_a_terminal_shows_a_table() -> None:
    code = "from tecomp.cli.common import show; show([{'name': 'one', 'value': 1}])"
    parent, child = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", code], stdout=child, check=True, timeout=60)
        shown = os.read(parent, 10_000).decode()
    finally:
        os.close(parent)
        os.close(child)

    assert "\x1b[1m" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).split() == ["name", "value", "one", "1"]


def test_page_matches_lower(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "commands.md").read_text(encoding="utf-8")
    code, output = re.findall(r"^```(?:python|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")

    assert output.splitlines()[1:] == ran("lower", f"{script}:twice", "--stage", "nest")[1].splitlines()


def test_export_writes_files_of_a_script(script: Path, tmp_path: Path) -> None:
    header, code = tmp_path / "plus_one.h", tmp_path / "plus_one.o"
    status, output = ran("export", f"{script}:by_hand", header, code, "--cpu", "x86-64-v2",
                         "--triple", "x86_64-unknown-linux-gnu")

    assert (status, output) == (0, f"{header}\n{code}\n")
    assert "int plus_one(const float *A, float *B);" in header.read_text(encoding="utf-8")
    assert code.read_bytes().startswith(b"\x7fELF")
    assert ran("export", f"{script}:compiled", tmp_path / "one") == (0, f"{tmp_path / 'one'}\n")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["one.a", "one.h"]
    _, record = ran("export", f"{script}:plain", header, "--name", "other", "--json")
    assert json.loads(record) == {"name": "other", "files": [str(header)]}
    assert ran("export", f"{script}:plain", tmp_path / "x.xyz")[1].startswith(
        "Error: export: the suffix of ")


def onnx_file(folder: Path) -> Path:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(name, kind, ["n", 3]) for name in ("x", "a/../y"))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["a/../y"], name="relu")], "g", [x], [y])
    onnx.save(helper.make_model(graph), folder / "model.onnx")
    np.save(folder / "x.npy", np.array([[-1, 0, 2]], np.float32))
    return folder / "model.onnx"


def test_a_model_runs_without_processes(tmp_path: Path) -> None:
    model = onnx_file(tmp_path)
    done = CliRunner().invoke(main, [
        "run", str(model), "--input", f"x={tmp_path / 'x.npy'}", "--output", str(tmp_path / "out"),
        "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.output)
    assert (row["output"], row["dtype"], row["shape"]) == ("a/../y", "float32", [1, 3])
    (written,) = (tmp_path / "out").iterdir()  # names of outputs do not leave the folder
    assert str(written) == row["file"]
    np.testing.assert_array_equal(np.load(written), [[0, 0, 2]])


@pytest.mark.parametrize("arguments", [
    [], ["--input", "x"], ["--input", "x=missing.npy"], ["--input", "x=model.onnx"],
])
def test_wrong_inputs_of_a_model_are_refused(arguments: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["run", str(onnx_file(tmp_path)), *arguments])
    assert done.exit_code != 0
    assert done.output.startswith(("Error", "Usage"))


def test_a_model_runs_in_one_process(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["run", "-n", "2", str(onnx_file(tmp_path))])
    assert done.exit_code == 2
    done = CliRunner().invoke(main, ["run", "script.py"])
    assert "Missing option '-n'" in done.output


def test_a_model_is_checked_for_targets(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [
        "onnx", "check", str(onnx_file(tmp_path)), "--target", "cpu", "--target", "stick128",
        "--size", "n=8", "--json"])
    assert done.exit_code == 0, done.output
    reports = json.loads(done.output)
    assert [report["target"] for report in reports] == ["cpu", "stick128"]
    assert all(report["is_supported"] and report["kernels"] for report in reports)
    assert reports[0]["operators"] == {"Relu": 1}

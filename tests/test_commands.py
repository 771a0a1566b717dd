"""Commands that show what is here and what a script defines, for people and for programs."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import tecomp
from tecomp.cli import main
from tecomp.cli.output import show

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


def test_the_doctor_finds_this_machine_well() -> None:
    status, output = ran("doctor", "--json")
    found = {row["check"]: row for row in json.loads(output)}

    assert status == 0
    assert all(row["well"] for row in found.values())
    assert found["tecomp"]["found"].startswith(tecomp.__version__)
    assert re.fullmatch(r"a kernel was compiled in \d+ ms, and is right", found["compiler"]["found"])
    rate = r"\w+ [\d.e+]+"
    assert re.fullmatch(
        rf"one core: (?:{rate}(?:, )?)+ G operations in a second with vectors, (?:{rate}(?:, )?)+ one by one; "
        rf"reads (?:{rate}(?:, )?)+ GB in a second", found["rates"]["found"],
    )


def test_the_doctor_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TECOMP_CACHE", raising=False)
    monkeypatch.setenv("TECOMP_CACHE_SIZE", "much")
    status, output = ran("doctor", "--json")
    row = next(row for row in json.loads(output) if row["check"] == "cache")

    assert status == 1
    assert not row["well"]
    assert "TECOMP_CACHE_SIZE" in row["found"]


def test_loops_after_any_pass(script: Path) -> None:
    status, nest = ran("lower", f"{script}:by_hand", "--stage", "nest")

    assert status == 0
    assert nest.splitlines()[1] == "    for i in vectorized(8):"
    assert "ramp(0, 1, 8)" in ran("lower", f"{script}:by_hand")[1]
    assert "# flatten_buffer\ndef main(" in ran("lower", f"{script}:plain", "--stage", "all")[1]
    assert "def schedule(B):" in ran("lower", f"{script}:plain", "--stage", "schedule")[1]
    assert "define" in ran("lower", f"{script}:plain", "--form", "llvm")[1]


def test_what_is_no_program_is_refused(script: Path, tmp_path: Path) -> None:
    for words, complaint in (
        (f"{script}:layout", f"{script}:layout is Layout; it has to be a pair: a schedule or a tensor, and "
         "the list of arguments, as tecomp.build takes them, or a function that gives one"),
        (f"{script}:C", f"{script} defines no `C`; it has A, B, by_hand, layout, plain, "
         "roofline"),
        (f"{tmp_path}/none.py:C", f"there is no file {tmp_path}/none.py"),
        ("script.py", "'script.py' names nothing; write script.py:name"),
    ):
        status, output = ran("lower", words)

        assert (status, output.splitlines()[-1]) == (2, f"Error: Invalid value: {complaint}")


def test_a_picture_of_what_a_script_defines(script: Path, tmp_path: Path) -> None:
    status, output = ran("viz", f"{script}:layout", "-o", tmp_path / "layout.svg")

    assert (status, output) == (0, f"{tmp_path}/layout.svg\n")
    assert (tmp_path / "layout.svg").read_text().startswith("<svg")
    assert ran("viz", f"{script}:roofline", "-o", tmp_path / "roofline.svg")[0] == 0
    assert "by hand: " in (tmp_path / "roofline.svg").read_text()
    assert ran("viz", f"{script}:plain")[1].splitlines()[-1] == (
        f"Error: Invalid value: {script}:plain is tuple, which has no picture"
    )


def test_operators_are_measured() -> None:
    status, output = ran("bench", "add", "--size", 16, "--seconds", "0.01", "--json")
    rows = json.loads(output[output.index("[\n") :])

    assert status == 0
    assert [row["operator"] for row in rows] == ["add"]
    assert rows[0]["times_as_fast"] > 0


@pytest.mark.parametrize("words", ["targets", "cache", "explain", "explain TE0201"])
def test_programs_read_json(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TECOMP_CACHE", raising=False)
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    status, output = ran(*words.split(), "--json")

    assert status == 0
    assert json.loads(output)


def test_programs_read_what_was_checked() -> None:
    checks = {check["title"]: check["passed"] for check in json.loads(ran("check-target", "cpu", "--json")[1])}

    assert checks["it is called as its file"]
    assert checks["a program keeps a tensor in `global`"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    status, output = ran("completion", shell)

    assert status == 0
    assert "_TECOMP_COMPLETE" in output


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"name": "a", "ok": True, "count": 1000}, {"name": "long", "ok": False, "count": 2}])

    assert capsys.readouterr().out == (
        "name  ok   count\n"
        "a     yes  1,000\n"
        "long  no       2\n"
    )


def test_a_terminal_shows_a_table() -> None:
    code = "from tecomp.cli.output import show; show([{'name': 'one', 'value': 1}])"
    parent, child = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", code], stdout=child, check=True, timeout=60)
        shown = os.read(parent, 10_000).decode()
    finally:
        os.close(parent)
        os.close(child)

    assert "\x1b[1m" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).split() == ["name", "value", "one", "1"]


def test_the_page_shows_what_lower_prints(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "commands.md").read_text(encoding="utf-8")
    code, shown = re.findall(r"^```(?:python|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")

    assert shown.splitlines()[1:] == ran("lower", f"{script}:twice", "--stage", "nest")[1].splitlines()

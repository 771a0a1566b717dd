"""Errors: abbreviation of long texts, and transfer to other processes."""

from __future__ import annotations

import ast
import copy
import linecache
import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tecomp
from tecomp import errors, te
from tests.messages import Diagnostic, diagnostic
from tests.strategies.bad_arguments import DEEP, HUGE, Unprintable


def refused() -> tecomp.TecompError:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i], name="B")
    with pytest.raises(tecomp.ScheduleError) as caught:
        te.create_schedule(B)[B].split(B.op.axis[0], factor=0)
    return caught.value


@pytest.mark.parametrize(("value", "text"), [
    ("x", "'x'"), ([1.5, None], "[1.5, None]"), (HUGE, "<int of 16,610 bits>"),
    ([-HUGE, 2], "[<int of 16,610 bits>, 2]"), (DEEP, "[[[[[[[...]]]]]]]"),
    ({"a": Unprintable()}, "{'a': <Unprintable object>}"), (Unprintable(), "<Unprintable object>"),
    (range(10**6), "range(0, 1000000)"),
], ids=errors.safe_repr)
def test_safe_repr(value: object, text: str) -> None:
    assert errors.safe_repr(value) == text
    assert errors.safe_str(value) == (value if isinstance(value, str) else text)


@pytest.mark.exhaustive
def test_errors_format_values_in_their_template() -> None:
    """No argument of an error calls `repr`, which may raise for values of users."""
    classes = {
        name for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, errors.TecompError)
    } - {"MissingError"}  # their values are attribute names, which are strings
    root = Path(__file__).parents[1]
    found = [
        f"{file.relative_to(root)}:{node.lineno}"
        for room in ("tecomp", "schedules") for file in sorted((root / room).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in classes
        for part in ast.walk(node)
        if (isinstance(part, ast.FormattedValue) and part.conversion == ord("r"))
        or (isinstance(part, ast.Call) and ast.unparse(part.func) == "repr")
    ]

    assert found == []


@pytest.mark.parametrize("repeated", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])
def test_errors_survive_pickling(repeated: object) -> None:
    """An error survives pickling; `multiprocessing` hangs on results that cannot be sent."""
    assert callable(repeated)
    error = refused()

    received = repeated(error)

    assert type(received) is tecomp.ScheduleError
    assert diagnostic(received) == Diagnostic(
        "invalid-value", where="s[B].split(i)", subject="factor", number=0,
    )
    assert (received.kind, received.code) == ("invalid-value", "TE0006")
    assert str(received) == str(error)
    assert str(repeated(received)) == str(error)


def test_an_error_without_a_place() -> None:
    error = tecomp.LowerError("lower: no")
    error.location = None

    assert str(pickle.loads(pickle.dumps(error))) == (
        "lower: no\n  TE0500: `tecomp explain TE0500` tells more"
    )


def test_long_texts_in_messages_lose_their_middle() -> None:
    with pytest.raises(tecomp.TypeMismatchError) as caught:
        te.placeholder((4,), "x" * 5000)

    first, last = "`" + "x" * 199, "x" * 199 + "`"
    assert caught.value.message.startswith(f"{first} ... {last} is not a valid dtype; ")
    assert len(tecomp.LowerError("lower: " + "12, " * 9000).message) == 4005


PROGRAM = """\
from tecomp import te

A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i], name="B")
s = te.create_schedule(B)

def half(axis):
    ünter = "漢", s[B].split(axis, factor=-1)

def shown(axis):
    made = [s[B].split(
        axis,

        factor=0,
    )]
"""


def refused_in(tmp_path: Path, call: str) -> str:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(PROGRAM, str(file), "exec"), names)
    linecache.checkcache(str(file))
    with pytest.raises(tecomp.ScheduleError) as caught:
        eval(call, names)
    return str(caught.value).replace(str(file), "program.py")


def test_carets_are_under_the_expression(tmp_path: Path) -> None:
    """Carets count terminal columns, where some characters are two columns wide."""
    assert refused_in(tmp_path, "half(B.op.axis[0])") == (
        "s[B].split(i): factor must be a positive integer, got -1\n"
        "  at program.py:8\n"
        '    ünter = "漢", s[B].split(axis, factor=-1)\n'
        "                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  TE0006: `tecomp explain TE0006` tells more"
    )


def test_carets_are_under_all_lines_of_an_expression(tmp_path: Path) -> None:
    assert refused_in(tmp_path, "shown(B.op.axis[0])") == (
        "s[B].split(i): factor must be a positive integer, got 0\n"
        "  at program.py:11\n"
        "    made = [s[B].split(\n"
        "            ^^^^^^^^^^^\n"
        "        axis,\n"
        "        ^^^^^\n"
        "        factor=0,\n"
        "        ^^^^^^^^^\n"
        "    )]\n"
        "    ^\n"
        "  TE0006: `tecomp explain TE0006` tells more"
    )


def test_carets_mark_late_uses(tmp_path: Path) -> None:
    """A partially indexed tensor is rejected where it is used, and shown where it is written."""
    (tmp_path / "user.py").write_text(
        "from tecomp import te\nA = te.placeholder((8, 16), name='A')\n"
        "B = [te.compute((n,), lambda i: A[i]) for n in (3, 4)]\n"
    )
    with pytest.raises(tecomp.TecompError) as caught:
        runpy.run_path(str(tmp_path / "user.py"))

    assert str(caught.value).splitlines()[2:-1] == [
        "    B = [te.compute((n,), lambda i: A[i]) for n in (3, 4)]",
        "                                    ^^^^",
    ]


def test_long_expressions_lose_their_middle(tmp_path: Path) -> None:
    lines = ["s[B].split(", "    B.op.axis[0],", *["    # why"] * 20, "    factor=0)"]
    file = tmp_path / "long.py"
    text = PROGRAM + "\n".join(lines)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(tecomp.ScheduleError) as caught:
        exec(compile(text, str(file), "exec"), {})

    picture = str(caught.value).splitlines()[2:-1]
    assert len(picture) == 17
    assert picture[8] == "    ..."
    assert picture[-2:] == ["        factor=0)", "        ^^^^^^^^^"]


class Shell:
    """Stand-in for the shell of IPython that formats errors."""

    compile = SimpleNamespace(
        format_code_name=lambda name: ("Cell", "In[7]") if name == "/tmp/kernel/1.py" else None
    )

    class InteractiveTB:
        """Formatting part of the traceback class of IPython."""

        @staticmethod
        def structured_traceback(kind: type, error: BaseException, traceback: Any) -> list[str]:
            names = []
            while traceback is not None:
                names.append(traceback.tb_frame.f_code.co_name)
                traceback = traceback.tb_next
            return [kind.__name__, *names]


def test_cells_of_notebooks_have_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    python = ModuleType("IPython")
    monkeypatch.setattr(python, "get_ipython", lambda: Shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", python)
    cell = 'from tecomp import te\nte.placeholder((-1,), name="A")\n'
    with pytest.raises(tecomp.DefinitionError) as caught:
        exec(compile(cell, "/tmp/kernel/1.py", "exec"), {})

    assert str(caught.value).splitlines()[1] == "  at In[7]:2"
    assert caught.value._render_traceback_() == [
        "DefinitionError", "test_cells_of_notebooks_have_numbers", "<module>"
    ]


def output(program: str, tmp_path: Path, **more: str) -> str:
    file = tmp_path / "program.py"
    file.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, check=False,
        env={**os.environ, "TECOMP_DEBUG": "0", **more},
    )
    assert done.returncode == 1
    before, error, message = done.stderr.replace(str(file), "program.py").partition("tecomp.errors.")
    # Python versions underline different parts of their own traceback lines.
    lines = [line for line in before.splitlines(keepends=True) if line.strip(" ~^\n")]
    return "".join(lines) + error + message


def test_tracebacks_end_at_the_users_line(tmp_path: Path) -> None:
    program = PROGRAM.replace("漢", "k") + "half(B.op.axis[0])\n"

    assert output(program, tmp_path) == (
        "Traceback (most recent call last):\n"
        '  File "program.py", line 16, in <module>\n'
        "    half(B.op.axis[0])\n"
        '  File "program.py", line 8, in half\n'
        '    ünter = "k", s[B].split(axis, factor=-1)\n'
        "tecomp.errors.ScheduleError: s[B].split(i): factor must be a positive integer, got -1\n"
        "  at program.py:8\n"
        '    ünter = "k", s[B].split(axis, factor=-1)\n'
        "                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  TE0006: `tecomp explain TE0006` tells more\n"
    )
    assert "tecomp/scheduling/loops.py" in output(program, tmp_path, TECOMP_DEBUG="1")


def test_tracebacks_keep_user_exceptions(tmp_path: Path) -> None:
    """Tracebacks keep exceptions of user code as causes, and frames of user callbacks."""
    program = """\
from tecomp import te

def element(i):
    return te.placeholder((-1,), name="A")[i]

try:
    {}["k"]
except KeyError:
    te.compute((8,), element)
"""
    shown = output(program, tmp_path)

    assert "KeyError: 'k'" in shown
    assert [line for line in shown.splitlines() if "File" in line] == [
        '  File "program.py", line 7, in <module>',
        '  File "program.py", line 9, in <module>',
        '  File "program.py", line 4, in element',
    ]


def test_tracebacks_of_our_own_mistakes_are_whole(tmp_path: Path) -> None:
    program = """\
import numpy as np, tecomp
f = tecomp.parse('def f(A: Buffer("float32", (4,))):\\n    A[3, 0] = float32(1.0)')
tecomp.evaluate(f, [np.zeros(4, "float32")])
"""
    assert "tecomp/ir/traversal/verify.py" in output(program, tmp_path)

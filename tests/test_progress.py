"""Progress: the logger `tecomp`, and the status line on terminals during slow work."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tecomp import progress as progress_module
from tecomp.progress import progress


class Terminal(io.StringIO):
    """Stream whose `isatty` is True."""

    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace stderr by a terminal; not a fixture, as pytest captures stderr anew for the test."""
    monkeypatch.setattr(sys, "stderr", result := Terminal())
    monkeypatch.setattr(progress_module, "MOMENT", 0.02)
    return result


def told(terminal: Terminal) -> list[str]:
    for thread in threading.enumerate():
        if thread.name == "tecomp: progress line":
            thread.join()
    return [line.strip() for line in terminal.getvalue().split("\r") if line.strip()]


def test_long_steps_are_reported_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with progress_module.log_duration("find a schedule"), progress_module.log_duration("count points"):
        time.sleep(0.2)

    lines = told(terminal)
    assert lines[-1] == "tecomp: count points, 0 s"
    assert set(lines) <= {"tecomp: find a schedule, 0 s", lines[-1]}
    assert terminal.getvalue().endswith(" \r")


def test_short_steps_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(progress_module, "MOMENT", 1.0)
    with progress_module.log_duration("count points"):
        pass

    assert told(terminal) == []


def test_a_line_that_counts_steps_is_not_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with progress("compile net", 2), progress_module.log_duration("count points"):
        time.sleep(0.1)

    assert told(terminal) == []


def test_the_logger_reports_passes_and_results(tmp_path: Path) -> None:
    program = """\
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
logging.getLogger("tecomp").setLevel("DEBUG")
import tecomp
from tecomp import te
A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] * 3.25 + 0.125, name="B")
tecomp.build(B, [A, B], name="logged")
tecomp.build(B, [A, B], name="logged")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "TECOMP_CACHE": "on", "TECOMP_CACHE_DIR": str(tmp_path)},
    )

    lines = re.sub(r"[\d.]+ ms", "T ms", done.stdout).splitlines()
    assert lines[0] == "tecomp DEBUG find a schedule of B for cpu: T ms"
    assert lines[1:3] == ["tecomp DEBUG the schedule of B for cpu:", "def schedule(B):"]
    first = lines.index("tecomp DEBUG build logged: not built before")
    assert lines[first + 1] == "tecomp DEBUG lower logged: nest: T ms"
    assert "tecomp DEBUG lower logged: flatten_buffer: T ms" in lines
    assert any(re.fullmatch(r"tecomp DEBUG LLVM compiles \d+ lines: T ms", x) for x in lines)
    # The steps, and the enclosing build.
    result = lines.index("tecomp DEBUG make LLVM code of logged: T ms")
    assert lines.index("tecomp DEBUG build logged: T ms") > result
    assert lines[-1] == "tecomp DEBUG build logged: found, as it was built before"


def test_progress_without_logger_has_no_cost() -> None:
    program = "import sys, tecomp; from tecomp import progress as work; work.log_debug('x'); print('logging' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"


def interrupted(running: subprocess.Popen[str]) -> str:
    """Return the output after ^C, repeated if the first arrived during a finalizer."""
    for _ in range(3):
        running.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return running.communicate(timeout=20)[1]
    running.kill()
    raise AssertionError("it goes on")


def test_slow_work_can_be_interrupted(tmp_path: Path) -> None:
    """^C ends lowering of a program that takes minutes, and leaves no partial file."""
    program = """\
import signal
import tecomp
from tecomp import te
# Whoever starts the tests in the background may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
X = te.placeholder((64,), name="X")
for k in range(100000):
    last = X
    for n in range(12):
        last = te.compute((64,), lambda i, last=last: last[i] * 2.0 + n, name=f"Y{k}_{n}")
    tecomp.build(last, [X, last], name=f"f{k}")
    print("built", flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TECOMP_CACHE_DIR": str(tmp_path)},
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "built\n"
        errors = interrupted(running)

    assert running.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not list(tmp_path.rglob("*.tmp*"))

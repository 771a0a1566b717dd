"""Fixtures that compile and run C programs with exported kernels."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., str]


@pytest.fixture(scope="session")
def cc() -> str:
    """Return the C compiler."""
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        pytest.skip("no C compiler (cc) is installed")
    return found


@pytest.fixture
def run_c(cc: str, tmp_path: Path) -> Run:
    """Return a function that compiles a C program with objects, runs it and returns its output."""

    def run(source: str, *objects: Any, env: dict[str, str] | None = None, word: str = "cc") -> str:
        compiler = cc if word == "cc" else shutil.which(word)
        if compiler is None:
            pytest.skip(f"{word} is not installed")
        suffix = "cc" if "++" in word else "c"
        path, program = tmp_path / f"program.{suffix}", tmp_path / "program"
        path.write_text(source, encoding="utf-8")
        standard = "-std=c++11" if suffix == "cc" else "-std=c99"
        command = [
            compiler, standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", str(tmp_path),
            str(path), *map(str, objects), "-Wl,-rpath," + str(tmp_path), "-lm", "-o", str(program),
        ]
        subprocess.run(command, check=True, cwd=tmp_path)
        done = subprocess.run(
            [str(program)], capture_output=True, text=True, check=False, cwd=tmp_path, env=env,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run

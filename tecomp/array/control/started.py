"""`tecomp run --controller`: what each process does that was started."""

from __future__ import annotations

import atexit
import json
import signal
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from runpy import run_module, run_path
from typing import Any

from tecomp.array.control.controller import Controller
from tecomp.array.control.together import send_by
from tecomp.array.control.worker import work
from tecomp.dist.runtime.alone import alone
from tecomp.dist.runtime.library import mpi
from tecomp.dist.runtime.team import world

# Known by its name, as an entry point has it: what arrays of teams do is above messages about it.
_ARRAYS = EntryPoint("arrays", "tecomp.array.teams.creation", "tecomp.controlled")


def main(words: list[str]) -> None:
    """Run a script, and what it asks for on all processes.

    Args:
        words: the script and its arguments; `-m` before the name of a module.
    """
    team = world()
    comm = mpi().COMM_WORLD.Dup()
    _ARRAYS.load()
    if team.rank:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one with the script says when all end
        work(comm)
        return
    controller = Controller(comm)
    atexit.register(controller.end)  # behind threads that the script has started
    send_by(controller)
    alone.waits = True
    _run(words)


def _run(words: list[str]) -> None:
    is_module = words[0] == "-m"
    sys.argv[:] = words[is_module:]
    name = sys.argv[0]
    if is_module:
        run_module(name, run_name="__main__", alter_sys=True)
        return
    sys.path[0] = str(Path(name).resolve().parent)
    if Path(name).suffix == ".ipynb":
        _run_cells(name)
    else:
        run_path(name, run_name="__main__")


def _run_cells(name: str) -> None:
    """The cells of a notebook with code, one after the other."""
    values: dict[str, Any] = {"__name__": "__main__", "__file__": name}
    cells = json.loads(Path(name).read_text("utf-8"))["cells"]
    for k, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, cell {k}", "exec"), values)


if __name__ == "__main__":
    main(sys.argv[1:])

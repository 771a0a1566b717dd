"""`tecomp run --controller`: one process runs the script, and all processes compute."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tecomp import dist
from tecomp.array.graph import materialized_node
from tecomp.array.single_controller import (
    RemoteCall,
    encode_value,
    pack_message,
    unpack_message,
)
from tecomp.errors import TeamError
from tecomp.ptensor import FUNCTIONS, PTensorType
from tests.array.conformance.methods import MAKERS
from tests.messages import Diagnostic, diagnostic
from tests.strategies.ranks import LIMIT, PROGRAMS, environment

SCRIPT = str(PROGRAMS / "controlled.py")


def started(
    *words: str, variables: Mapping[str, str] | None = None, **source: Any
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from tecomp.cli import main; main(prog_name='tecomp')", "run", *words],
        env=environment(**(variables or {})),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **source,
    )


def run(
    n: int, *words: str, stdin: str = "", variables: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Return the exit status and the output of a run."""
    process = started("-n", str(n), "--controller", *words, variables=variables)
    try:
        out, errors = process.communicate(stdin, timeout=LIMIT)
    finally:
        process.kill()
    return process.returncode, out, errors


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("n", [3, 4, 1])
def test_controller_scripts_read_values(n: int) -> None:
    assert run(n, SCRIPT, "branches") == (0, f"all right 6 Team(1, rank 0 of {n})\n", "")


@pytest.mark.exhaustive
def test_drawn_calls_of_every_function(kernels: Path) -> None:
    script = str(PROGRAMS / "conforms.py")
    kept = {"TECOMP_CACHE_DIR": str(kernels), "TECOMP_CACHE": "on"}
    status, message, errors = run(3, script, "1", "0", variables=kept)

    assert (status, errors) == (0, "")
    assert message.startswith(f"0 of {len(MAKERS)} calls differ\ngathered by ")


@pytest.mark.exhaustive
def test_collective_calls_are_rejected_in_controllers() -> None:
    """Calls that every process would have to make are rejected; the run continues afterwards."""
    refused = [
        Diagnostic("partition", placed="Shard(7)", ndim=2),
        *(Diagnostic("team", subject=subject) for subject in (
            "to_local", "from_local", "allreduce sum float64[2]", "split")),
        Diagnostic("team", qualname="Own"),
    ]
    assert run(2, SCRIPT, "refusals") == (0, "\n".join([*map(str, refused), "8.0\n"]), "")


def test_an_exception_of_the_script_ends_all() -> None:
    status, _, errors = run(3, SCRIPT, "raises")

    assert status == 1
    assert errors.count("Traceback") == 1
    assert "ValueError: the sum is 5.0" in errors


@pytest.mark.exhaustive
def test_an_exception_of_another_process_ends_all() -> None:
    start = time.monotonic()
    status, _, errors = run(3, SCRIPT, "worker_raises")

    assert status == 1
    assert errors.count("Traceback") == 1
    assert "MemoryError: none is left" in errors
    assert time.monotonic() - start < 60  # takes a few seconds on an idle machine


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize(("words", "status"), [
    (("ends_early", "0"), {0}), (("ends_early", "3"), {3}), (("leaves",), {1, 9})])
def test_scripts_that_end_early(words: tuple[str, ...], status: set[int]) -> None:
    """`os._exit` in a process is a failure; the launcher may terminate other processes first."""
    assert run(2, SCRIPT, *words)[0] in status


@pytest.mark.exhaustive
def test_interactive_controller_prompts() -> None:
    assert run(2, SCRIPT, "asks", stdin="5\nlast\n") == (0, "how many? and? 10 last\n", "")


@pytest.mark.exhaustive
def test_a_module_that_reads_stdin() -> None:
    typed = (
        "import tecomp.array as xp\nfrom tecomp import dist\n"
        "x = xp.ones(6, team=dist.world())\nprint(x.team, float(xp.sum(x)))\n"
    )
    status, out, _ = run(2, "-m", "code", "-q", stdin=typed)

    assert (status, "1 6.0" in out) == (0, True)


@pytest.mark.exhaustive
def test_the_cells_of_a_notebook(tmp_path: Path) -> None:
    cells = [
        ("code", ["from tecomp import dist\n", "import tecomp.array as xp"]), ("markdown", ["# Sum"]),
        ("code", ["x = xp.arange(6, team=dist.world())"]), ("code", ["print(int(x[4]), x.team)"]),
    ]
    book = {"cells": [{"cell_type": kind, "source": source} for kind, source in cells]}
    path = tmp_path / "sum.ipynb"
    path.write_text(repr(book).replace("'", '"'))

    assert run(2, str(path)) == (0, "4 1\n", "")


@pytest.mark.exhaustive
def test_controller_handles_keyboard_interrupt(tmp_path: Path) -> None:
    flag = tmp_path / "started"
    process = started("-n", "2", "--controller", SCRIPT, "hangs", str(flag), start_new_session=True)
    wait_for(flag, process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT)

    assert process.returncode == 130
    assert errors.count("KeyboardInterrupt") <= 1  # the message may be lost on termination


@pytest.mark.exhaustive
def test_terminating_a_run_terminates_its_processes(tmp_path: Path) -> None:
    flag = tmp_path / "started"
    process = started("-n", "2", "--controller", SCRIPT, "hangs", str(flag))
    wait_for(flag, process)
    process.terminate()
    process.communicate(timeout=LIMIT)

    assert process.returncode == 143
    script = int(flag.read_text())
    wait_until(lambda: not Path(f"/proc/{script}").exists())


@pytest.mark.exhaustive
def test_the_time_limit() -> None:
    status, _, errors = run(2, "--timeout", "5", SCRIPT, "hangs", os.devnull)

    assert status == 1
    assert errors.splitlines()[-1] == (
        f"Error: run: 2 processes of {SCRIPT} did not exit within 5 seconds and were "
        "terminated; increase --timeout, or check where they wait")


def wait_for(flag: Path, process: subprocess.Popen[str]) -> None:
    wait_until(lambda: flag.exists() or process.poll() is not None)


def wait_until(condition: Any) -> None:
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < LIMIT
        time.sleep(0.05)


def test_hashes_are_not_sent() -> None:
    """The hash of a string differs between processes, so cached hashes are not pickled."""
    op, type = FUNCTIONS["add"], PTensorType((3,), "float64", "cpu", 1)
    hash(op), hash(type)
    done = subprocess.run(
        [sys.executable, "-c", HASHES], input=pickle.dumps((op, type)), capture_output=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "77"})

    assert done.stdout == b"True True\n"


HASHES = """
import pickle, sys
from tecomp.ptensor import FUNCTIONS
from tecomp.ptensor import PTensorType
op, type = pickle.loads(sys.stdin.buffer.read())
print(hash(op) == hash(FUNCTIONS["add"]), hash(type) == hash(PTensorType((3,), "float64", "cpu", 1)))
"""


@pytest.mark.exhaustive
def test_controller_sends_local_arrays() -> None:
    node = materialized_node(np.arange(3.0), PTensorType((3,), "float64"))
    found = unpack_message(pack_message(RemoteCall(0, "kept", encode_value((node, [dist.Shard(0)], None, "asarray")), ())))

    assert isinstance(found, RemoteCall)
    elements, placements, *rest = found.arguments
    np.testing.assert_array_equal(elements.data, np.arange(3.0))
    assert (placements, rest) == ([dist.Shard(0)], [None, "asarray"])


def test_unpicklable_arguments_are_rejected() -> None:
    with pytest.raises(TeamError) as caught:
        pack_message(RemoteCall(0, "kept", (threading.Lock(),), ()))
    assert diagnostic(caught.value) == (
        Diagnostic("team", reason="cannot pickle '_thread.lock' object"))

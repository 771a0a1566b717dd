"""`import tecomp` is fast: slow libraries are imported lazily."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = {"click", "hypothesis", "llvmlite", "matplotlib", "ml_dtypes", "mpi4py", "networkx", "pytest", "scipy"}


def modules_of(statement: str) -> set[str]:
    """Return the modules of a fresh interpreter after one statement."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def loaded_by(statement: str) -> set[str]:
    """Return the top-level names of the modules."""
    return {name.split(".")[0] for name in modules_of(statement)}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("statement", ["import tecomp", "from tecomp import te", "from tecomp import dist"])
def test_importing_loads_nothing_slow(statement: str) -> None:
    loaded = loaded_by(statement)

    assert "tecomp" in loaded
    assert loaded & SLOW == set()


def test_the_command_line_loads_nothing_slow() -> None:
    assert loaded_by("import tecomp.cli") & SLOW == {"click"}


def test_arrays_wait_for_nothing_that_compiles() -> None:
    names = [name.split(".") for name in modules_of("import tecomp.array")]

    rooms = {name[1] for name in names if name[0] == "tecomp" and len(name) > 1}
    assert rooms == {
        "array", "caches", "drawing", "errors", "fork_gate", "ir", "lazy_imports", "operations",
        "ptensor",
        "source_locations",
    }
    assert {name[2] for name in names if name[1:2] == ["drawing"] and len(name) > 2} == {"drawable"}
    language = {".".join(name[2:]) for name in names if name[:2] == ["tecomp", "ir"]}
    assert language == {"", "nodes", "nodes.dtype"}
    operations = {name[2] for name in names if name[:2] == ["tecomp", "ptensor"] and len(name) > 2}
    assert not operations & {"formulas", "formulas.tables", "lowering", "te_definitions", "values"}
    assert not {name[0] for name in names} & (SLOW | {"islpy"})


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("statement", [
    "import tecomp.te",
    """
from tecomp import te
A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: te.exp(A[i]) * 2.0, name="B")
s = te.create_schedule(B)
outer, inner = s[B].split(B.op.axis[0], factor=8)
s[B].parallel(outer), s[B].vectorize(inner)
te.IndexMap.from_func(lambda i, j: [j, te.AXIS_SEPARATOR, i])
""",
])
def test_definitions_and_schedules_wait_for_nothing_that_decides_or_compiles(statement: str) -> None:
    names = modules_of(statement)

    assert not {name.partition(".")[0] for name in names} & (SLOW | {"islpy", "subprocess"})
    rooms = {".".join(name.split(".")[1:3]) for name in names if name.startswith("tecomp.")}
    assert {room for room in rooms if room.startswith("poly.")} == {"poly.maps"}
    assert not rooms & {"ir.interpreter", "ir.parser"}
    known = {
        "compute", "drawing", "errors", "ir", "lazy_imports", "operations", "poly",
        "scheduling",
        "source_locations", "te",
    }
    assert {room.partition(".")[0] for room in rooms} == known


@pytest.mark.exhaustive
def test_kernels_of_processors_are_compiled_without_the_model_of_costs() -> None:
    compiled = """
import numpy as np, tecomp, tecomp.array as xp
from tecomp import te
A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
tecomp.build(te.create_schedule(B), [A, B])
x = xp.asarray(np.arange(6.0))
assert float(xp.sum(xp.exp(x))) > 1
"""
    assert not {name for name in modules_of(compiled) if name.startswith("tecomp.cost_model.")}


def test_operations_are_recorded_without_the_compiler() -> None:
    recorded = """
import numpy as np, tecomp.array as xp
x = xp.asarray(np.arange(6.0))
y = xp.sum(xp.exp(x[1:] * 2 - 0.5), axis=0)
assert y.shape == () and float(x[3]) == 3.0
"""
    assert not {name for name in modules_of(recorded) if name.startswith(("tecomp.te", "tecomp.compute"))}


def test_pictures_wait_for_whoever_looks() -> None:
    loaded = modules_of("import tecomp\ntecomp.te.create_schedule\ntecomp.Layout\ntecomp.lower\ntecomp.build")

    rooms = {name for name in loaded if name.startswith(("tecomp.drawing", "tecomp.viz"))}
    assert rooms == {"tecomp.drawing", "tecomp.drawing.drawable"}


_KEPT = """
import numpy as np, tecomp
from tecomp import te
A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
s = te.create_schedule(B)
s[B].vectorize(s[B].split(B.op.axis[0], factor=8)[1])
kernel = tecomp.build(s, [A, B])
out = np.empty(64, "float32")
kernel(np.ones(64, "float32"), out)
assert out[5] == 2
"""
_MOST_MODULES = 137
"""Modules of this package for a kernel from the disk cache; 250 take 0.1 s longer."""


@pytest.mark.exhaustive
def test_kernels_from_the_disk_cache_are_run_without_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TECOMP_CACHE", "on")
    first = modules_of(_KEPT)

    kept_modules = modules_of(_KEPT)

    assert "tecomp.lowering.pipeline" in first
    slow = ("tecomp.codegen.emit", "tecomp.codegen.ops", "tecomp.lowering.loops", "tecomp.relayout_kernels",
            "tecomp.ir.interpreter", "tecomp.poly.sets", "islpy", "statistics", "html")
    assert not {name for name in kept_modules if name.startswith(slow)}
    assert len({name for name in kept_modules if name.startswith("tecomp")}) <= _MOST_MODULES

"""Error messages without MPI or with two MPI packages, and the features that need no MPI."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from importlib import metadata
from tecomp import MissingLibraryError, dist

{cause}
rows = dist.Partition((4,), "int8", dist.Mesh((2,)), [dist.Shard(0)])
assert rows.local_shape(0) == (2,)
try:
    dist.world()
except MissingLibraryError as error:
    assert isinstance(error, ImportError)
    print(error.kind, error.parameters)
"""


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("cause", "parameters"), [
    ("sys.modules['mpi4py'] = None", {"reason": "import of mpi4py halted; None in sys.modules"}),
    ("metadata.distribution = lambda name: name", {}),
])
def test_message_for_a_missing_mpi(cause: str, parameters: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(cause=cause)],
        capture_output=True, text=True, check=False,
    )

    assert (done.stdout.strip(), done.stderr) == (f"missing-library {parameters}", "")


ALONE = """
import sys
import tecomp.array as xp
from tecomp import dist

rows = dist.Partition((4,), "int8", dist.Mesh((2,)), [dist.Shard(0)])
assert rows.local_shape(0) == (2,)
assert float(xp.sum(xp.ones(3))) == 3
print([name for name in sys.modules if name.partition(".")[0] in ("mpi4py", "mpi")])
assert dist.world().size == 1
assert "mpi4py.MPI" in sys.modules
"""


@pytest.mark.exhaustive
def test_mpi_starts_with_the_first_team() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("[]\n", "")

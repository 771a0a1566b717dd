# %% [markdown]
# # 12. Write a target and package it as a plug-in
#
# You will describe a machine in a file, run programs on it, read their cost, fix an error in the
# description, and package the file so that others can install it. Prerequisites: tutorials 6 and
# 10. Time: ten minutes.
#
# The machine: eight cores that share an on-chip memory, and a scratchpad per core to which rows
# are copied. It computes on rows of 16 elements. The machine does not exist yet. This is when a
# description is most valuable.

# %%
import tempfile
from pathlib import Path

import numpy as np

import tecomp
from tecomp import te

DESCRIPTION = """
name = "eight"
description = "eight cores around a memory on their chip"
clock_hz = 800_000_000

[code]
kind = "functional"               # programs run on this processor, as the machine would run them

[grid]
core.x = 8

[stick]
bytes = 64                        # 16 numbers of float32
padding = "stick"
source = "width of the unit"

[formats]
float32 = ["float32"]

[memory.global]
scope = "chip"
rank = 1
alignment_bytes = 64
read_bytes_per_cycle = 128
write_bytes_per_cycle = 128
source = "plan of the chip"

[memory.near]
scope = "core"
rank = 1
alignment_bytes = 64
capacity_bytes = 65_536
read_bytes_per_cycle = 64
write_bytes_per_cycle = 64
source = "plan of the chip"

[link.load]
from = "global"
to = "near"
scope = "core"
bytes_per_cycle = 32
source = "plan of the chip"

[link.store]
from = "near"
to = "global"
scope = "core"
bytes_per_cycle = 32
source = "plan of the chip"

[engine.unit]
kind = "vector"
width_bytes = 64
types = ["float32"]
cycles = { default = 1, exp = 8 }
memory = "near"
source = "plan of the chip"
"""


def described(text):
    """Load the target of a description from a file, as from a package."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "eight.toml"
        path.write_text(text)
        return tecomp.Target.load(path)


machine = described(DESCRIPTION)
print(machine.name, machine.grid, machine.memory("near").usable_bytes)
machine

# %% [markdown]
# Units are part of the key names, and each table names the source of its numbers. Unknown keys,
# missing keys and values of a wrong type are errors. The next cell causes such an error on
# purpose, with a key in another unit:

# %%
try:
    described(DESCRIPTION.replace("capacity_bytes = 65_536", "capacity_kb = 64"))
except tecomp.TargetError as error:
    print(error.message.split("eight.toml")[-1])

# %% [markdown]
# No more is needed: programs that were not written for this machine run on it. Schedules and
# layouts follow from the description.

# %%
def attention(n=256, d=64):
    Q, K, V = (te.placeholder((n, d), name=name) for name in "QKV")
    k, r, p, q = (te.reduce_axis((0, extent)) for extent in (d, n, n, n))
    S = te.compute((n, n), lambda i, j: te.sum(Q[i, k] * K[j, k], axis=k), name="S")
    M = te.compute((n,), lambda i: te.max(S[i, r], axis=r), name="M")
    E = te.compute((n, n), lambda i, j: te.exp(S[i, j] - M[i]), name="E")
    T = te.compute((n,), lambda i: te.sum(E[i, p], axis=p), name="T")
    R = te.compute((n, d), lambda i, j: te.sum(E[i, q] / T[i] * V[q, j], axis=q), name="R")
    return R, [Q, K, V]


def expected(q, k, v):
    e = np.exp(q @ k.T - (q @ k.T).max(1, keepdims=True))
    return e / e.sum(1, keepdims=True) @ v


output, inputs = attention()
program = tecomp.compile(output, inputs, target=machine)
data = np.random.default_rng(0).random((3, 256, 64), np.float32)
np.testing.assert_allclose(program(*data), expected(*data), rtol=1e-4)
program.picture()

# %% [markdown]
# The report lists the bottleneck of each kernel:

# %%
print(program.report())

# %% [markdown]
# **Predict.** What would a scratchpad of half the size change, and of an eighth? Does the program
# still fit?

# %%
for capacity in (65_536, 32_768, 8_192):
    smaller = machine.overridden(memory={"near": {"capacity_bytes": capacity}})
    try:
        cycles = tecomp.compile(output, inputs, target=smaller).report().cycles
        print(f"{capacity:6} bytes: {cycles:9,.0f} cycles")
    except tecomp.TecompError as error:
        print(f"{capacity:6} bytes: {error.message}")

# %% [markdown]
# It fits, with smaller blocks, and the time hardly changes: the bottleneck is the bandwidth of the
# scratchpads, not the copies to them. A value that does not fit into a scratchpad is spilled to
# memory, and the report gives the reason.
#
# Before others use the target, check that the description is consistent. `check_target` builds and
# runs a small program for each memory, at its rank and up to its last byte, for each axis of cores
# and for each operation of a unit:

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "eight.toml"
    path.write_text(DESCRIPTION)
    checks = tecomp.check_target(path)
for check in checks[1:6]:
    print("ok    " if check.passed else "FAILED", check.title)

# %% [markdown]
# A package for the target consists of the file and an entry point that names its path. `tecomp
# new-target eight` creates it in a new directory: a description to complete, a test, and this
# entry point:
#
# ```toml
# [project.entry-points."tecomp.targets"]
# eight = "eight_target:descriptions"
# ```
#
# After `pip install -e eight`, users pass `target="eight"`, and `tecomp targets` lists it.
# Intrinsics for `tensorize` (tutorial 11) are registered with the entry point `tecomp.intrinsics`
# in the same way, and `tecomp check-target eight` runs the check above.
#
# **Exercise.** The designers of the chip ask which change gains more: links of twice the
# bandwidth, or scratchpads of twice the read bandwidth. The report above contains the answer.
# Return it in numbers: the cycles of this program with either change.

# %%
def answer(machine, cycles_of):
    """Return the cycles with either change; `cycles_of(target)` compiles the program and counts."""
    return {"links": cycles_of(machine), "scratchpads": cycles_of(machine)}


def check(answer):
    def cycles_of(target):
        return tecomp.compile(output, inputs, target=target).report().cycles

    before, after = (f"capacity_bytes = 65_536\nread_bytes_per_cycle = {n}" for n in (64, 128))
    links = described(DESCRIPTION.replace("\nbytes_per_cycle = 32", "\nbytes_per_cycle = 64"))
    scratchpads = described(DESCRIPTION.replace(before, after))
    found = answer(machine, cycles_of)
    assert found == {"links": cycles_of(links), "scratchpads": cycles_of(scratchpads)}
    assert found["scratchpads"] < found["links"] <= cycles_of(machine)


# check(answer)

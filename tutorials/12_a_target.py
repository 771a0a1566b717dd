# %% [markdown]
# # 12. Write a target, and ship it as a plug-in
#
# You will describe a machine in a file, run programs on it, see what it costs, mend a mistake in
# the description, and know what to put around the file so that others can install it. You need:
# tutorials 6 and 10. Time: ten minutes.
#
# The machine: eight cores around a memory on their chip, whose rows go to a scratchpad of each
# core. It works on rows of 16 numbers. It does not exist, or not yet: that is when a description
# is worth most.

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
    """The target of a description, by way of a file, as a package has one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "eight.toml"
        path.write_text(text)
        return tecomp.Target.load(path)


machine = described(DESCRIPTION)
print(machine.name, machine.grid, machine.memory("near").usable_bytes)
machine

# %% [markdown]
# Units are part of the names of keys, and each table says where its numbers come from. What is
# unknown, missing, or of the wrong type is refused. One mistake on purpose, a key that was
# written with another unit:

# %%
try:
    described(DESCRIPTION.replace("capacity_bytes = 65_536", "capacity_kb = 64"))
except tecomp.TargetError as error:
    print(error.message.split("eight.toml")[-1])

# %% [markdown]
# This is all that is needed: programs that nobody wrote for this machine run on it. Schedules and
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
# Each kernel of it says what its time goes into:

# %%
print(program.report())

# %% [markdown]
# **Predict.** What would a scratchpad of half the size change, and what one of an eighth? Does
# the program still fit?

# %%
for capacity in (65_536, 32_768, 8_192):
    smaller = machine.overridden(memory={"near": {"capacity_bytes": capacity}})
    try:
        cycles = tecomp.compile(output, inputs, target=smaller).report().cycles
        print(f"{capacity:6} bytes: {cycles:9,.0f} cycles")
    except tecomp.TecompError as error:
        print(f"{capacity:6} bytes: {error.message}")

# %% [markdown]
# It fits, in smaller blocks, and hardly anything changes: what each core reads of its own memory
# decides, not what is copied there. A value that has no room in a scratchpad is stored and loaded
# again, and the report says why.
#
# Before others use it: does all that is described hold together? The check builds and runs a
# small program for each memory, at its rank and up to its last byte, for each axis of cores and
# each operation of a unit:

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "eight.toml"
    path.write_text(DESCRIPTION)
    checks = tecomp.check_target(path)
for check in checks[1:6]:
    print("ok    " if check.passed else "FAILED", check.title)

# %% [markdown]
# A package for it is the file and a line that says where it is, an entry point. `tecomp new-target
# eight` writes all of that in a new folder: a description to fill in, a test, and this:
#
# ```toml
# [project.entry-points."tecomp.targets"]
# eight = "eight_target:descriptions"
# ```
#
# After `pip install -e eight` everybody writes `target="eight"`, and `tecomp targets` lists it.
# Operations for `tensorize` (tutorial 11) come by `tecomp.intrinsics` in the same way, and
# `tecomp check-target eight` is the check from above.
#
# **Exercise.** The team of the chip asks what is worth more: links of twice the rate, or
# scratchpads that are read at twice the rate. The report above has the answer; give it in
# numbers, the cycles of this program with either change.

# %%
def answer(machine, cycles_of):
    """`cycles_of(target)` is what the program takes on a target."""
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

# %% [markdown]
# # 10. Fit, traffic and cost on a described machine
#
# You will run a kernel as a machine with scratchpads would, see what has room there, and find
# what its time goes into, before there is such a machine. You need: tutorials 2 and 6. Time: ten
# minutes.

# %%
import numpy as np

import tecomp
from tecomp import te

machine = tecomp.Target.load("stick128")
print(machine.grid, machine.clock_hz)
for name in ("ddr", "lx"):
    memory = machine.memory(name)
    print(name, memory.scope, memory.usable_bytes, memory.read_bytes_per_cycle)

# %% [markdown]
# A target is a file: memories with their size and rate, links between them, cores, and what a
# core computes with. `ddr` is one memory for the whole chip, and each of 32 cores has a
# scratchpad `lx` of its own.
#
# A kernel for it copies rows to scratchpads, computes there, and copies back. `nparts` says in
# how many parts the rows are cut, and each part is on a core; `block` is how many rows of it are
# in the scratchpad at one time:

# %%
A = te.placeholder((4096, 1024), "float16", name="A")
B = te.compute(A.shape, lambda i, j: A[i, j] * A[i, j] + A[i, j], name="B")


def schedule(cores, block):
    s = te.create_schedule(B)
    for tensor in (A, B):
        s[tensor].set_scope("ddr")
    near, out = s.cache_read(A, "lx", [B]), s.cache_write(B, "lx")
    core, rows = s[B].split(B.op.axis[0], nparts=cores)
    step, _ = s[B].split(rows, factor=block)
    s[B].bind(core, te.thread_axis("core.x"))
    s[near].compute_at(s[B], step)
    s[out].compute_at(s[B], step)
    return s


report = tecomp.build(schedule(32, 16), [A, B], target=machine).report()
print(report)

# %% [markdown]
# Nothing was run for that. Bytes, runs and operations are counted from the loops, exactly, and
# cycles follow from the rates in the file. Each resource works at the same time as the others, so
# the busiest one decides.
#
# **Predict.** The kernel is bound by a memory of the chip, and reads and writes each element
# once. What will the time be with 8 cores instead of 32? And with one?

# %%
for cores in (32, 8, 1):
    report = tecomp.build(schedule(cores, 16), [A, B], target=machine).report()
    print(f"{cores:3} cores  {report.cycles:10,.0f} cycles, bound by {report.bound_by}")

# %% [markdown]
# A few cores are enough to keep that memory busy. Where the bound is another one, more of them
# help.
#
# A block of 16 rows takes 32 KB in the scratchpad. The result takes nothing more: each element is
# stored in the place from which it was read. What if a core takes all of its 128 rows at once, and
# has 128 KB? One mistake on purpose, on a machine that has less of it:

# %%
small = machine.overridden(memory={"lx": {"capacity_bytes": 131_072, "reserved_bytes": 0}})
try:
    tecomp.build(schedule(32, 128), [A, B], target=small)
except tecomp.CapacityError as error:
    print(error.message)

# %% [markdown]
# The message names the buffers, and a schedule that fits: it was tried. So it is taken:

# %%
kernel = tecomp.build(schedule(32, 64), [A, B], target=small)
a = np.random.default_rng(0).random(A.shape).astype(np.float16)
b = np.empty_like(a)
kernel(a, b)
np.testing.assert_allclose(b, a * a + a, rtol=2e-3)

# %% [markdown]
# The report of it as a picture: what runs when, how busy each core is, how much memory is used,
# and the roofline. A core has two blocks: while it loads the first there is nothing to store, and
# while it stores the last nothing to load. So the order takes half as long again as the busiest
# memory works; smaller blocks overlap more.

# %%
kernel.report()

# %% [markdown]
# What goes where over time is a trace that [Perfetto](https://ui.perfetto.dev) and
# `chrome://tracing` open: `kernel.report().trace()`. Last, a program on this machine,
# which chooses layouts and schedules itself: what kernels there are, and what is in memory as
# time goes:

# %%
program = tecomp.compile(B, [A], target=machine)
print(program.report())
program.picture()


# %% [markdown]
# **Exercise.** What would a memory `ddr` of twice the rate bring? Make that machine of the
# description, and give its cycles for `schedule(32, 16)`.

# %%
def answer(machine):
    return machine


def check(answer):
    faster = answer(machine)
    for direction in ("read", "write"):
        rate = f"{direction}_bytes_per_cycle"
        assert getattr(faster.memory("ddr"), rate) == 2 * getattr(machine.memory("ddr"), rate)
    before, after = (
        tecomp.build(schedule(32, 16), [A, B], target=target).report().cycles
        for target in (machine, faster)
    )
    assert 1.5 < before / after <= 2


# check(answer)

# %% [markdown]
# # 10. Capacity, traffic and cost on a target description
#
# You will run a kernel for a machine with scratchpads, check whether its data fit, and find its
# bottleneck, before the machine exists. Prerequisites: tutorials 2 and 6. Time: ten minutes.

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
# A target is a file: memories with their capacity and bandwidth, links between them, cores, and
# compute units. `ddr` is one memory of the whole chip, and each of 32 cores has a private
# scratchpad `lx`.
#
# A kernel for this machine copies rows to scratchpads, computes there, and copies the results
# back. `nparts` is the number of parts into which the rows are split, one per core. `block` is the
# number of rows that are in the scratchpad at a time:

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
# The report does not run the kernel. Bytes, runs and operations are counted exactly from the
# loops, and cycles follow from the rates in the file. The resources work concurrently, so the
# busiest one determines the time.
#
# **Predict.** The kernel is bound by a memory of the chip, and reads and writes each element once.
# What is its time with 8 cores instead of 32? With one core?

# %%
for cores in (32, 8, 1):
    report = tecomp.build(schedule(cores, 16), [A, B], target=machine).report()
    print(f"{cores:3} cores  {report.cycles:10,.0f} cycles, bound by {report.bound_by}")

# %% [markdown]
# A few cores saturate this memory. If another resource is the bottleneck, more cores help.
#
# A block of 16 rows occupies 32 KB of the scratchpad. The result needs no additional memory,
# because each element is stored in place of its input. What if a core processes all of its 128
# rows at once, which needs 128 KB? The next cell causes this error on purpose, on a machine with a
# smaller scratchpad:

# %%
small = machine.overridden(memory={"lx": {"capacity_bytes": 131_072, "reserved_bytes": 0}})
try:
    tecomp.build(schedule(32, 128), [A, B], target=small)
except tecomp.CapacityError as error:
    print(error.message)

# %% [markdown]
# The message names the buffers, and a schedule that fits; the compiler has checked it. Use it:

# %%
kernel = tecomp.build(schedule(32, 64), [A, B], target=small)
a = np.random.default_rng(0).random(A.shape).astype(np.float16)
b = np.empty_like(a)
kernel(a, b)
np.testing.assert_allclose(b, a * a + a, rtol=2e-3)

# %% [markdown]
# The report as a figure: the timeline, the load of each core, the memory usage, and the roofline.
# A core processes two blocks. While it loads the first there is nothing to store, and while it
# stores the last there is nothing to load. The time is therefore one and a half times that of the
# busiest memory; smaller blocks overlap better.

# %%
kernel.report()

# %% [markdown]
# `kernel.report().trace()` returns a timeline that [Perfetto](https://ui.perfetto.dev) and
# `chrome://tracing` open. Finally, a program on this machine, for which the compiler selects
# layouts and schedules: its kernels, and the memory contents over time:

# %%
program = tecomp.compile(B, [A], target=machine)
print(program.report())
program.picture()


# %% [markdown]
# **Exercise.** What would a memory `ddr` of twice the bandwidth gain? Derive this machine from the
# description, and return its cycles for `schedule(32, 16)`.

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

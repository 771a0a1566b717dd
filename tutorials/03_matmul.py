# %% [markdown]
# # 3. A matrix product, from naive loops to the peak of the machine
#
# You will make the three loops of a matrix product fifty times as fast by schedule changes only,
# and compare each step with the limits of the processor. Prerequisites: tutorial 2. Time: fifteen
# minutes.

# %%
import numpy as np

import tecomp
from tecomp import te

n = 256
A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
k = te.reduce_axis((0, n), name="k")
C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

# %% [markdown]
# First the roofline: what can one core achieve at best? The operating system does not report this,
# so it is measured once per machine: arithmetic with products that stay in registers, bandwidth
# with sums of arrays in each cache and in memory. At the end of this tutorial you will know the
# schedule of these products.
#
# Each schedule below is compared with the roofline, and its results with NumPy. `steps` is the
# roofline to which each schedule adds its point:

# %%
cpu = tecomp.calibrate("cpu")
peak = cpu.rates.flops["float32"]
one_by_one = cpu.rates.scalar_flops["float32"]
print(f"on one core {peak / 1e9:.0f} GFLOP/s with vectors, {one_by_one / 1e9:.0f} scalar")
lanes = cpu.core.vector_bytes // 4
print(f"{lanes} lanes per vector, {cpu.core.vector_registers} vector registers")

a, b = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
c = np.empty((n, n), np.float32)
steps = None


def measure(name, s):
    global steps
    kernel = tecomp.build(s, [A, B, C], target=cpu)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    found = kernel.roofline(a, b, c, measured=True, label=name)
    steps = found if steps is None else steps + found
    speed = found.marks[0].speed
    print(f"{name:12} {speed / 1e9:6.1f} GFLOP/s, {speed / peak:4.0%} of the peak of a core")
    return steps


measure("naive", te.create_schedule(C))

# %% [markdown]
# Sloped lines are the bandwidths of caches and memory, and horizontal lines are peak arithmetic
# rates. The product executes 43 operations per byte of its matrices, so its point is far to the
# right of the slopes: it is not bound by memory bandwidth in principle, only by how the loops use
# memory. All schedules have the same intensity and differ in height.
#
# The naive loops add one element at a time and read `B` column by column.
#
# **Predict.** With `k` outside `j`, a row of `B` times one element of `A` is added to a row of
# `C`. Memory is read sequentially, and adjacent elements are computed in one vector. What is still
# slow?

# %%
s = te.create_schedule(C)
i, j = C.op.axis
s[C].reorder(i, k, j)
measure("reordered", s)

# %% [markdown]
# Each addition reads an element of `C` and writes it back. There are three memory accesses per two
# operations, and the core can execute more operations than accesses. The report counts them. In
# the figure of one row of `C`, an arrow is an element that is written, and read again for the next
# `k`:

# %%
report = tecomp.build(s, [A, B, C], target=cpu).report()
operations = sum(report.operations.values())
moved = report.of("global", "read").bytes + report.of("global", "write").bytes
print(operations / moved, "operations per byte")
s[C].domain_picture(k, j)

# %% [markdown]
# Therefore a tile of `C` should stay in registers during the loop over `k`. `cache_write` creates
# a stage that computes a tile in a separate memory. In memory `local`, a stage whose loops are all
# unrolled or vectorized is allocated to registers. The figure shows where the tile is computed:

# %%
rows, columns = cpu.core.vector_registers // 4, 2 * lanes


def tiled(rows, columns):
    s = te.create_schedule(C)
    tile = s.cache_write(C, "local")
    io, jo, ii, ji = s[C].tile(*C.op.axis, rows, columns)
    s[C].reorder(jo, io, ii, ji)
    s[tile].compute_at(s[C], io)
    i, j = tile.op.axis
    s[tile].reorder(*tile.op.reduce_axis, i, j)
    for tensor, few, lanes_of in ((C, ii, ji), (tile, i, j)):
        s[tensor].unroll(few)
        s[tensor].vectorize(lanes_of)
    return s, jo, tile


s, *_ = tiled(rows, columns)
s.picture()

# %%
measure("small tile", tiled(4, lanes)[0])
measure("tile", s)

# %% [markdown]
# A step of `k` reads `rows` elements of `A` and `columns` elements of `B` for `2 * rows * columns`
# operations. Larger tiles are better, until the registers are exhausted. Here half of the
# registers are accumulators, which are independent of each other.
#
# The next cell causes an error on purpose. Since `cache_write`, `k` is a loop of the tile and not
# of `C`, so nothing can be computed at it:

# %%
s, jo, tile = tiled(rows, columns)
try:
    s[tile].compute_at(s[C], k)
except tecomp.ScheduleError as error:
    print(error.message)

# %% [markdown]
# A tile reads a strip of `B`: `columns` columns of all rows, which are far apart in memory. A
# layout of a copy makes each strip contiguous, once for all tiles that read it. This matters most
# for large matrices; here `B` is in a cache in any case. The figure shows the layout of the copy
# for a small matrix and strips of four columns:

# %%
tecomp.Layout.of((6, 12), "float32", lambda p, q: [q // 4, p, q % 4])

# %%
s, jo, tile = tiled(rows, columns)
strips = s.cache_read(B, "global", [tile])
s[strips].transform_layout(lambda p, q: [q // columns, p, q % columns])
measure("strips", s)

# %% [markdown]
# The last step parallelizes the outer loop over all cores. `tecomp.schedules.auto` takes all of
# these decisions itself, for any size; its trace is a schedule like those above. Both use all
# cores, so the figure also has dashed roofs: the roof of one core times the number of cores.

# %%
s[C].parallel(jo)
measure("parallel", s)
measure("auto", tecomp.schedules.auto(C, cpu))


# %% [markdown]
# **Exercise.** Compute a matrix product with a bias per column, `A @ B + bias`. Compute the
# product at the loop over blocks of 8 rows of the sum, so that at most 8 of its rows are in memory
# at a time. In `answer`, `P` is the product and `S` the sum.

# %%
def answer(s, P, S):
    s[S].split(S.op.axis[0], factor=8)


def check(answer):
    k = te.reduce_axis((0, 64), name="k")
    X, W = te.placeholder((32, 64), name="X"), te.placeholder((64, 16), name="W")
    bias = te.placeholder((16,), name="bias")
    P = te.compute((32, 16), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="P")
    S = te.compute((32, 16), lambda i, j: P[i, j] + bias[j], name="S")
    s = te.create_schedule(S)
    answer(s, P, S)
    loops = str(tecomp.lower(s, [X, W, bias, S]))
    assert 'Allocate(Buffer("float32", (128,))) as P' in loops


# check(answer)

# %% [markdown]
# # 3. A matmul, from naive towards the machine's peak
#
# You will take the three loops of a product of matrices and make them fifty times as fast, by
# changes of the schedule alone, and know after each how far it is from what the processor can do.
# You need: tutorial 2. Time: fifteen minutes.

# %%
import numpy as np

import tecomp
from tecomp import te

n = 256
A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
k = te.reduce_axis((0, n), name="k")
C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

# %% [markdown]
# The roofline first: what can a core do at best? The system does not tell. So it is measured, once
# for each machine, by products that stay in registers and by sums of arrays in each cache and in
# memory. You will know the schedule of those products by the end.
#
# Each schedule below is compared with that, and its numbers with NumPy's. `steps` is the roofline
# of all of them, to which each adds itself:

# %%
cpu = tecomp.calibrate("cpu")
peak = cpu.rates.flops["float32"]
one_by_one = cpu.rates.scalar_flops["float32"]
print(f"on one core {peak / 1e9:.0f} GFLOP/s with vectors, {one_by_one / 1e9:.0f} without")
lanes = cpu.core.vector_bytes // 4
print(f"{lanes} numbers in a vector, {cpu.core.vector_registers} vectors in registers")

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
# A line that slopes is what a cache or memory lets through, a level one what computing allows. The
# product does 43 operations for each byte of its matrices, so it stands far right of where
# the slopes end: no memory has to bind it, only the way in which the loops use it. All
# schedules stand at the same place, and have to climb.
#
# The naive loops add up one element at a time, and walk down a column of `B`.
#
# **Predict.** With `k` outside of `j`, a row of `B` times one number is added to a row of `C`.
# Memory is read in its order, and neighbours are computed at once. What is still slow about it?

# %%
s = te.create_schedule(C)
i, j = C.op.axis
s[C].reorder(i, k, j)
measure("reordered", s)

# %% [markdown]
# Each addition reads an element of `C` and writes it back. For two operations there are three
# accesses, and the core can do more operations than accesses. The report counts them. In
# the picture of one row of `C`, an arrow is an element that is written, and read again for the
# next `k`:

# %%
report = tecomp.build(s, [A, B, C], target=cpu).report()
operations = sum(report.operations.values())
moved = report.of("global", "read").bytes + report.of("global", "write").bytes
print(operations / moved, "operations for each byte")
s[C].domain_picture(k, j)

# %% [markdown]
# So a tile of `C` should stay in registers while `k` runs through. `cache_write` makes a stage
# that computes a tile in a memory of its own; `local`, with all of its loops unrolled or vectors,
# becomes registers. The picture shows where the tile is computed:

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
# A step of `k` reads `rows` numbers of `A` and `columns` of `B` for `2 * rows * columns`
# operations: larger tiles are better, until there are no more registers. Here half of them are
# sums, which do not wait for each other.
#
# One mistake on purpose: `k` is a loop of the tile since `cache_write`, and none of `C`, so that
# nothing can be computed there:

# %%
s, jo, tile = tiled(rows, columns)
try:
    s[tile].compute_at(s[C], k)
except tecomp.ScheduleError as error:
    print(error.message)

# %% [markdown]
# A tile reads a strip of `B`, `columns` of all rows. In `B` they are far apart. A layout of a
# copy puts each strip together, once for all tiles that read it. For large matrices that matters
# most; here `B` is in a cache anyway. The picture is that of the copy, for a small matrix and
# strips of four columns:

# %%
tecomp.Layout.of((6, 12), "float32", lambda p, q: [q // 4, p, q % 4])

# %%
s, jo, tile = tiled(rows, columns)
strips = s.cache_read(B, "global", [tile])
s[strips].transform_layout(lambda p, q: [q // columns, p, q % columns])
measure("strips", s)

# %% [markdown]
# The last step is the outer loop on all cores. `tecomp.schedules.auto` takes all of these
# decisions itself, for any size; its trace is a schedule like the ones above. Both use
# all cores, so there are dashed roofs for these: so many times that of one core.

# %%
s[C].parallel(jo)
measure("parallel", s)
measure("auto", tecomp.schedules.auto(C, cpu))


# %% [markdown]
# **Exercise.** Compute a product of matrices with a bias for each column, `A @ B + bias`, such
# that the product is computed in the loop over blocks of 8 rows of the sum: no more than 8 rows
# of it are in memory at one time. In `answer`, `P` is the product and `S` the sum.

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

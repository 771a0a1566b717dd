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
# The roofline first: what can a core do at best? A target says what the system tells of the
# processor, but clocks change while a program runs. So it is measured: a product of a few rows
# and columns, so small that all of it stays in registers and in the first cache, a thousand
# times. You will know its schedule by the end.

# %%
cpu = tecomp.Target.load("cpu")
lanes = cpu.core.vector_bytes // 4
rows, columns = cpu.core.vector_registers // 4, 2 * lanes


def in_registers(s, tile, tensor, loop, i, j):
    """Compute a tile of `tensor` in registers in each iteration of `loop`."""
    s[tensor].unroll(i)
    s[tensor].vectorize(j)
    s[tile].compute_at(s[tensor], loop)
    *_, i, j = tile.op.axis
    s[tile].reorder(*tile.op.reduce_axis, i, j)
    s[tile].unroll(i)
    s[tile].vectorize(j)


X, Y = te.placeholder((rows, 128), name="X"), te.placeholder((128, columns), name="Y")
r = te.reduce_axis((0, 128), name="r")
T = te.compute((1000, rows, columns), lambda t, i, j: te.sum(X[i, r] * Y[r, j], axis=r), name="T")
s = te.create_schedule(T)
in_registers(s, s.cache_write(T, "local"), T, *T.op.axis)
kernel = tecomp.build(s, [X, Y, T], target=cpu)
x, y, t = (np.zeros(tensor.shape, np.float32) for tensor in (X, Y, T))
peak = 2 * t.size * 128 / kernel.timeit(x, y, t).min / 1e9
print(f"{lanes} numbers in a vector, {cpu.core.vector_registers} vectors in registers")
print(f"{peak:.0f} GFLOP/s on one core; cores: {cpu.core.count}")

# %% [markdown]
# Each schedule below is compared with that, and its numbers with NumPy's:

# %%
a, b = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
c = np.empty((n, n), np.float32)
rates = {}


def measure(name, s):
    kernel = tecomp.build(s, [A, B, C], target=cpu)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    rates[name] = 2 * n**3 / kernel.timeit(a, b, c).min / 1e9
    print(f"{name:12} {rates[name]:6.1f} GFLOP/s, {rates[name] / peak:4.0%} of the peak of a core")


measure("naive", te.create_schedule(C))

# %% [markdown]
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
# becomes registers. The function above does that, and the picture shows where the tile is computed:

# %%
def tiled(rows, columns):
    s = te.create_schedule(C)
    tile = s.cache_write(C, "local")
    io, jo, ii, ji = s[C].tile(*C.op.axis, rows, columns)
    s[C].reorder(jo, io, ii, ji)
    in_registers(s, tile, C, io, ii, ji)
    return s, jo, tile


s, *_ = tiled(4, lanes)
measure("small tile", s)
s, *_ = tiled(rows, columns)
measure("tile", s)
s.picture()

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
s, jo, tile = tiled(rows, columns)
strips = s.cache_read(B, "global", [tile])
s[strips].transform_layout(lambda p, q: [q // columns, p, q % columns])
measure("strips", s)
tecomp.Layout.of((6, 12), "float32", lambda p, q: [q // 4, p, q % 4])

# %% [markdown]
# The last step is the outer loop on all cores. `tecomp.schedules.auto` takes all of these
# decisions itself, for any size; its trace is a schedule like the ones above.

# %%
s[C].parallel(jo)
measure("parallel", s)
measure("auto", tecomp.schedules.auto(C, cpu))

for name, rate in rates.items():
    print(f"{name:12} {'#' * round(50 * rate / peak)} {rate:.0f}")


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

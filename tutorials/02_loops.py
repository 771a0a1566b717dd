# %% [markdown]
# # 2. Loops: split, reorder, vectorize
#
# You will change the loops of a kernel step by step, watch what each step does to them, and make
# it twenty times as fast, without touching the formula. You need: tutorial 1. Time: ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import te

n, m = 2000, 1500
A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, n), name="k")
S = te.compute((m,), lambda j: te.sum(A[k, j], axis=k), name="S")


def show(s):
    print(tecomp.lower(s, [A, S], stop_after="nest").body)


s = te.create_schedule(S)
show(s)

# %% [markdown]
# `S` has the sums of the columns of `A`. The loop over `k` is inside: one column after the other,
# from top to bottom. Two neighbours of a column are 1500 elements apart in memory.
#
# A function to measure with. It checks the numbers, too, since a schedule must never change them:

# %%
a = np.random.default_rng(0).random((n, m), dtype=np.float32)
sums = np.empty(m, np.float32)


def milliseconds(s):
    kernel = tecomp.build(s, [A, S], target="cpu")
    kernel(a, sums)
    np.testing.assert_allclose(sums, a.sum(axis=0), rtol=1e-4)
    return kernel.timeit(a, sums).min * 1e3


print(f"columns one by one  {milliseconds(s):6.3f} ms")

# %% [markdown]
# **Predict.** `reorder` exchanges the loops: for each row, add its elements to all sums. There
# are as many additions as before, and many more writes. Is it faster or slower?

# %%
(j,) = S.op.axis
s[S].reorder(k, j)
show(s)
print(f"row by row          {milliseconds(s):6.3f} ms")
s[S].domain_picture(k, j)

# %% [markdown]
# The picture has the first iterations, with the number of each: row by row. Arrows are dependences:
# what is added to a sum, is added to what the row above left of it.
#
# Memory is read in its order now, each line of it once, and neighbours can be added up by one
# vector instruction. The sums themselves are few, and stay in the first cache.
#
# `split` cuts a loop into two: blocks, and what is inside a block. The next schedule walks down a
# block of 64 columns at a time. 64 does not divide 1500, so the last block is shorter. The picture
# shows the loops before and after the last call:

# %%
s = te.create_schedule(S)
jo, ji = s[S].split(j, factor=64)
s[S].reorder(jo, k, ji)
show(s)
s.step_picture()

# %% [markdown]
# `vectorize` says that all iterations of a loop are computed at once. The loop has 64 of them,
# and 28 in the last block; lowering takes the two cases apart, so that no vector has to ask how
# long it is. `parallel` gives the blocks to all processors:

# %%
s[S].vectorize(ji)
s[S].parallel(jo)
show(s)
print(f"blocks of columns   {milliseconds(s):6.3f} ms")

# %% [markdown]
# Whether that is faster than the line above depends on the machine: how many processors there
# are, and how many of them it takes to use all of its memory's bandwidth. Only measuring tells.
#
# Every step was recorded. The trace prints as a function that makes the schedule again. As JSON
# it can be stored, and replayed on the same definition:

# %%
print(s.trace)

again = tecomp.replay(s.trace.to_json(), S)
assert str(tecomp.lower(again, [A, S])) == str(tecomp.lower(s, [A, S]))

# %% [markdown]
# One mistake on purpose. The iterations of `k` all add to the same sum, so they cannot be the
# lanes of one vector:

# %%
try:
    s[S].vectorize(k)
except tecomp.ScheduleError as error:
    print(error.message)

# %% [markdown]
# A picture: which elements of a small matrix are neighbours in memory. Follow the arrows from row
# to row, then think of a loop that walks down a column.

# %%
tecomp.Layout.of((6, 8), "float32", lambda i, j: [i, j])


# %% [markdown]
# **Exercise.** Give the schedule of a sum of two matrices these loops, from outside to inside:
# blocks of 32 rows, which run on all processors; the rows of a block; vectors of 16.

# %%
def answer(s, T):
    s[T].vectorize(T.op.axis[1])


def check(answer):
    X, Y = te.placeholder((128, 64), name="X"), te.placeholder((128, 64), name="Y")
    T = te.compute((128, 64), lambda i, j: X[i, j] + Y[i, j], name="T")
    s = te.create_schedule(T)
    answer(s, T)
    loops = str(tecomp.lower(s, [X, Y, T], stop_after="nest").body).splitlines()
    assert [line.strip() for line in loops[:4]] == [
        "for i_outer in parallel(4):",
        "for i_inner in range(32):",
        "for j_outer in range(4):",
        "for j_inner in vectorized(16):",
    ]


# check(answer)

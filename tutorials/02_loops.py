# %% [markdown]
# # 2. Loops: split, reorder, vectorize
#
# You will transform the loops of a kernel step by step, observe the effect of each step, and make
# the kernel twenty times as fast, without changing the definition. Prerequisites: tutorial 1.
# Time: ten minutes.

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
# `S` contains the column sums of `A`. The loop over `k` is the inner loop: columns are summed one
# after the other, from top to bottom. Adjacent elements of a column are 1500 elements apart in
# memory.
#
# The next cell defines a function that measures a kernel. It also checks the results, because a
# schedule must never change them:

# %%
a = np.random.default_rng(0).random((n, m), dtype=np.float32)
sums = np.empty(m, np.float32)


def milliseconds(s):
    kernel = tecomp.build(s, [A, S], target="cpu")
    kernel(a, sums)
    np.testing.assert_allclose(sums, a.sum(axis=0), rtol=1e-4)
    return kernel.timeit(a, sums).min * 1e3


print(f"column by column    {milliseconds(s):6.3f} ms")

# %% [markdown]
# **Predict.** `reorder` interchanges the loops: the elements of each row are added to all sums.
# The number of additions is the same, but there are many more writes. Is the kernel faster or
# slower?

# %%
(j,) = S.op.axis
s[S].reorder(k, j)
show(s)
print(f"row by row          {milliseconds(s):6.3f} ms")
s[S].domain_picture(k, j)

# %% [markdown]
# The figure shows the first iterations and numbers them in execution order: row by row. Arrows are
# dependences: each iteration adds to the result of the iteration in the row above.
#
# Memory is now read sequentially, each cache line once, and one vector instruction can add
# adjacent elements. There are few sums, and they stay in the first-level cache.
#
# `split` divides a loop into an outer loop over blocks and an inner loop within a block. The next
# schedule processes a block of 64 columns at a time. 64 does not divide 1500, so the last block is
# shorter. The figure shows the loops before and after the last call:

# %%
s = te.create_schedule(S)
jo, ji = s[S].split(j, factor=64)
s[S].reorder(jo, k, ji)
show(s)
s.step_picture()

# %% [markdown]
# `vectorize` executes all iterations of a loop in vector lanes. The loop has 64 iterations, and 28
# in the last block. Lowering separates the two cases, so vectors need no length check. `parallel`
# distributes the blocks over all processors:

# %%
s[S].vectorize(ji)
s[S].parallel(jo)
show(s)
print(f"blocks of columns   {milliseconds(s):6.3f} ms")

# %% [markdown]
# Whether this is faster than the previous version depends on the machine: on the number of
# processors, and on how many of them saturate the memory bandwidth. Only a measurement shows it.
#
# Every primitive call is recorded. The trace prints as a function that reproduces the schedule. As
# JSON it can be stored and replayed on the same definition:

# %%
print(s.trace)

again = tecomp.replay(s.trace.to_json(), S)
assert str(tecomp.lower(again, [A, S])) == str(tecomp.lower(s, [A, S]))

# %% [markdown]
# The next cell causes an error on purpose. All iterations of `k` add to the same sum, so they
# cannot be vector lanes:

# %%
try:
    s[S].vectorize(k)
except tecomp.ScheduleError as error:
    print(error.message)

# %% [markdown]
# The figure shows which elements of a small matrix are adjacent in memory. Follow the arrows from
# row to row, then imagine a loop that goes down a column.

# %%
tecomp.Layout.of((6, 8), "float32", lambda i, j: [i, j])


# %% [markdown]
# **Exercise.** Schedule the sum of two matrices with these loops, from outer to inner: blocks of
# 32 rows, distributed over all processors; the rows of a block; vectors of 16.

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

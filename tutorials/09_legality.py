# %% [markdown]
# # 9. Legality: why a schedule is rejected
#
# You will request schedules that would change the result, read why they are rejected, and follow
# each message to a legal schedule. Prerequisites: tutorial 2. Time: ten minutes.
#
# A primitive never changes the result. If legality cannot be proved, the primitive raises an error
# that names the conflicting elements and the remedy. The traceback ends at the rejected call in
# your code. The schedule is left unchanged.
#
# `rfactor`, and `reorder` of reduction loops, combine elements in another order, so floating-point
# sums round differently. A user-defined reducer must be commutative: among equal elements it must
# select by index and not by order, for example the smallest index. `rfactor` of such a search
# keeps the first index anyway; `reorder` does not.

# %%
import numpy as np

import tecomp
from tecomp import te

n = 16
A = te.placeholder((n, n), name="A")
P = te.compute((n, n), lambda i, j: A[i, j] * 2.0, name="P")
C = te.compute((n - 2, n), lambda i, j: P[i, j] + P[i + 2, j], name="C")
k = te.reduce_axis((0, n), name="k")
R = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="R")


def ask(question):
    try:
        question()
    except tecomp.TecompError as error:
        print(error.message)
    else:
        print("legal")


# %% [markdown]
# **Predict.** The row sums of a matrix: can several processors compute different rows? Can several
# processors add the elements of one row?

# %%
s = te.create_schedule(R)
ask(lambda: s[R].parallel(R.op.axis[0]))
ask(lambda: s[R].parallel(k))

# %% [markdown]
# All iterations of `k` update one element. The message names the remedy: `rfactor` computes
# partial sums, one per iteration of a loop, which are independent.

# %%
s = te.create_schedule(R)
_, ki = s[R].split(k, factor=4)
partial = s.rfactor(R, ki)
ask(lambda: s[partial].parallel(partial.op.axis[0]))
print(tecomp.lower(s, [A, R], stop_after="nest").body)

# %% [markdown]
# `C` reads two rows of `P`. `compute_at` recomputes `P` where it is needed: exactly the rows that
# a block of `C` reads, including the rows shared with the next block. This is redundant
# computation, but the result is correct. The bounds are derived from the accesses; nobody
# specifies them:

# %%
s = te.create_schedule(C)
io, ii = s[C].split(C.op.axis[0], factor=4)
s[P].compute_at(s[C], io)
print(tecomp.lower(s, [A, C], stop_after="nest").body)

# %% [markdown]
# What if another stage outside this loop also reads `P`? Its input would not exist:

# %%
D = te.compute((n, n), lambda i, j: P[i, j] + 1.0, name="D")
E = te.compute((n - 2, n), lambda i, j: C[i, j] + D[i, j], name="E")
s = te.create_schedule(E)
s[P].compute_at(s[D], D.op.axis[0])
ask(lambda: tecomp.lower(s, [A, E]))

# %% [markdown]
# A scan computes each row from the previous row. Its steps are sequential on every machine; the
# elements of one step are independent:

# %%
X, last = te.placeholder((n, n), name="X"), te.placeholder((n, n), name="last")
first = te.compute((1, n), lambda _, j: X[0, j], name="first")
step = te.compute((n, n), lambda t, j: last[t - 1, j] + X[t, j], name="step")
total = te.scan(first, step, last, [X], name="total")
s = te.create_schedule(total)
ask(lambda: s[total].parallel(total.op.scan_axis))
ask(lambda: s[step].vectorize(step.op.axis[1]))

# %% [markdown]
# If each core has a private memory, the location of data matters. Here seven cores compute rows of
# `P`, each in its scratchpad, and seven cores compute rows of `C`. The error names an element that
# one core computes and another core reads:

# %%
machine = tecomp.Target.load("stick128")


def on_cores(s, *tensors):
    for tensor in tensors:
        outer, _ = s[tensor].split(tensor.op.axis[0], nparts=7)
        s[tensor].bind(outer, te.thread_axis("core.x"))
    return outer


s = te.create_schedule(C)
s[P].set_scope("lx")
on_cores(s, P, C)
ask(lambda: tecomp.build(s, [A, C], target=machine))

# %% [markdown]
# The message offers two remedies. One is a copy over the link between the cores. With the other,
# each core computes the rows of `P` that it needs:

# %%
s = te.create_schedule(C)
s[P].set_scope("lx")
s[P].compute_at(s[C], on_cores(s, C))
kernel = tecomp.build(s, [A, C], target=machine)

a = np.random.default_rng(0).random((n, n), dtype=np.float32)
c = np.empty((n - 2, n), np.float32)
kernel(a, c)
np.testing.assert_array_equal(c, a[:-2] * 2 + a[2:] * 2)
print(kernel.report())

# %% [markdown]
# The loops before and after this call:

# %%
s.step_picture()

# %% [markdown]
# The next figure shows the same definitions as a program without a schedule. Legality concerns the
# values that are passed between kernels.

# %%
tecomp.compile([C, R], [A]).picture()


# %% [markdown]
# **Exercise.** Copy the rows from the other cores instead: compute `P` once, on seven cores, in
# `lx`, and use `s.cache_read` to create a stage that copies the rows that a core needs. Then no
# row is computed twice.

# %%
def answer(s, P, C):
    on_cores(s, P, C)


def check(answer):
    s = te.create_schedule(C)
    answer(s, P, C)
    kernel = tecomp.build(s, [A, C], target=machine)
    kernel(a, c)
    np.testing.assert_array_equal(c, a[:-2] * 2 + a[2:] * 2)
    report = kernel.report()
    assert report.operations["mul float32"] == n * n
    assert report.links


# check(answer)

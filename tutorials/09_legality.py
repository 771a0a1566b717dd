# %% [markdown]
# # 9. Legality: ask why not
#
# You will ask for schedules that would compute something else, read why they are refused, and
# follow each message to a schedule that is right. You need: tutorial 2. Time: ten minutes.
#
# A primitive never changes what is computed. What cannot be proved is refused, by a message that
# names the values and what to do instead; a traceback ends with the expression in your code that
# was refused. The schedule is then as it was before.
#
# `rfactor`, and `reorder` of reduction loops, combine elements in another order. Sums of floats
# round differently then. A reducer of your own must be commutative: of equal elements it prefers
# the one with the lesser index, not the one that comes first. `rfactor` of such a search keeps the
# first index anyway; `reorder` does not.

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
        print("it is legal")


# %% [markdown]
# **Predict.** The sums of rows: can the rows be computed by several processors? Can the elements
# of a row be added up by several?

# %%
s = te.create_schedule(R)
ask(lambda: s[R].parallel(R.op.axis[0]))
ask(lambda: s[R].parallel(k))

# %% [markdown]
# The iterations of `k` update one element. The message names the way out: `rfactor` makes partial
# sums, one for each iteration of a loop, and those are apart from each other.

# %%
s = te.create_schedule(R)
_, ki = s[R].split(k, factor=4)
partial = s.rfactor(R, ki)
ask(lambda: s[partial].parallel(partial.op.axis[0]))
print(tecomp.lower(s, [A, R], stop_after="nest").body)

# %% [markdown]
# `C` reads two rows of `P`. `compute_at` computes `P` anew where it is needed: exactly the rows
# that a block of `C` reads, the two that go beyond the block included. That is more work, and no
# wrong number. Nobody said `bounds`; they are derived from the accesses:

# %%
s = te.create_schedule(C)
io, ii = s[C].split(C.op.axis[0], factor=4)
s[P].compute_at(s[C], io)
print(tecomp.lower(s, [A, C], stop_after="nest").body)

# %% [markdown]
# What if another stage reads `P` as well, outside of that loop? Then there would be nothing for
# it to read:

# %%
D = te.compute((n, n), lambda i, j: P[i, j] + 1.0, name="D")
E = te.compute((n - 2, n), lambda i, j: C[i, j] + D[i, j], name="E")
s = te.create_schedule(E)
s[P].compute_at(s[D], D.op.axis[0])
ask(lambda: tecomp.lower(s, [A, E]))

# %% [markdown]
# A scan makes each row from the one before. Its steps are in order, whatever the machine; the
# elements of one step are not:

# %%
X, last = te.placeholder((n, n), name="X"), te.placeholder((n, n), name="last")
first = te.compute((1, n), lambda _, j: X[0, j], name="first")
step = te.compute((n, n), lambda t, j: last[t - 1, j] + X[t, j], name="step")
total = te.scan(first, step, last, [X], name="total")
s = te.create_schedule(total)
ask(lambda: s[total].parallel(total.op.scan_axis))
ask(lambda: s[step].vectorize(step.op.axis[1]))

# %% [markdown]
# On a machine whose cores have memories of their own, it matters where data are. Here seven cores
# make rows of `P`, each in its scratchpad, and seven make rows of `C`. The refusal names an
# element that one core makes and another reads:

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
# The message has two ways out. One is a copy over the link between the cores. The other: each
# core computes the rows of `P` that it needs itself.

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
# What that call changed, before and after it:

# %%
s.step_picture()

# %% [markdown]
# Another picture: the same definitions as a program, without a schedule. What goes from which
# kernel to which is what legality is about.

# %%
tecomp.compile([C, R], [A]).picture()


# %% [markdown]
# **Exercise.** Copy the rows from the other cores instead: `P` is computed once, on seven cores,
# in `lx`, and `s.cache_read` makes a stage that copies what a core needs of it. Then no row is
# computed twice.

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

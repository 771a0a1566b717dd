# %% [markdown]
# # 11. Tensorize: give your engine its instruction
#
# You will describe an instruction that multiplies small tiles, have it checked, put it in the
# place of loops, and see it take tiles at the edge and other layouts. You need: tutorials 2, 4
# and 9. Time: ten minutes.
#
# Machines have instructions that do the work of a whole nest of loops: a product of 4x4 tiles, a
# sum of dot products, a copy of a stick. A compiler has to know two things about one: what it
# computes, and how it is called.

# %%
import numpy as np

import tecomp
from tecomp import te

T = 4


def tile_product():
    """What the instruction computes, as any computation is written."""
    a, b = (te.placeholder((T, T), name=name) for name in "ab")
    r = te.reduce_axis((0, T), name="r")
    return te.compute((T, T), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")


# %% [markdown]
# How it is called are statements on operands: what computes a tile from nothing, what sets it to
# the initial value, and what adds to it, for loops of the sum that are outside. Here they are
# loops; for a real engine they would be a call of it, `te.call_extern("mma_4x4", ...)`.

# %%
def each(statement):
    return te.for_range(0, T, lambda i: te.for_range(0, T, lambda j: statement(i, j)))


def run(ins, outs):
    (a, b), (c,) = ins, outs
    reset = each(lambda i, j: c.store((i, j), 0.0))
    update = each(
        lambda i, j: te.for_range(
            0, T, lambda r: c.store((i, j), c[i, j] + a[i, r] * b[r, j])
        )
    )
    return te.stmt_seq(reset, update), reset, update


mma = te.decl_tensor_intrin(tile_product().op, run, name="mma")
print(mma.name)

# %% [markdown]
# The two descriptions are compared by running them, on random values. One mistake on purpose, an
# index in the wrong order, does not get as far as a schedule:

# %%
def transposed(ins, outs):
    (a, b), (c,) = ins, outs
    reset = each(lambda i, j: c.store((i, j), 0.0))
    update = each(
        lambda i, j: te.for_range(
            0, T, lambda r: c.store((i, j), c[i, j] + a[r, i] * b[r, j])
        )
    )
    return te.stmt_seq(reset, update), reset, update


try:
    te.decl_tensor_intrin(tile_product().op, transposed, name="wrong")
except tecomp.TecompError as error:
    print(error.message)

# %% [markdown]
# Now a product of matrices. Tiles of `C` are outside, the loops of one tile inside, and the
# outermost of those is replaced with all that is in it:

# %%
def product(m, n, depth):
    A, B = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def tensorized(C, intrinsic):
    s = te.create_schedule(C)
    io, jo, ii, ji = s[C].tile(*C.op.axis, T, T)
    ko, ki = s[C].split(*C.op.reduce_axis, factor=T)
    s[C].reorder(io, jo, ko, ii, ji, ki)
    s[C].tensorize(ii, intrinsic)
    return s


A, B, C = product(8, 12, 16)
print(tecomp.lower(tensorized(C, mma), [A, B, C], stop_after="nest").body)

# %% [markdown]
# A `TensorOp` says which operation the statements are, and what they touch. That the loops
# compute what the instruction computes was decided on the sets of elements that are read and
# written, so names and the order of axes do not matter, and nor do layouts.
#
# **Predict.** A product of 10 by 13, with a sum of 16, has tiles that go over the edge. How many
# instructions will that be? Must you pad the matrices? (The picture below is the first
# product: what is left of its loops, and the instruction.)

# %%
def check_product(m, n, depth, intrinsic=mma):
    A, B, C = product(m, n, depth)
    kernel = tecomp.build(tensorized(C, intrinsic), [A, B, C])
    random = np.random.default_rng(0)
    a, b = (random.random(X.shape, np.float32) for X in (A, B))
    c = np.full((m, n), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    return kernel.report().tiles


print(check_product(8, 12, 16), check_product(10, 13, 16))
A, B, C = product(8, 12, 16)
tecomp.lower(tensorized(C, mma), [A, B, C], stop_after="nest").picture()

# %% [markdown]
# 3 by 4 tiles, four times each: tiles at the edge are there, and masked. What they would read
# beyond the end of the sum is 0, which changes nothing. For a maximum that would not do, and the
# schedule would be refused until the padding holds a value that does.
#
# An engine wants its tiles side by side in memory. A layout says so, and the operands follow:
# their strides come from the schedule and not from the instruction. The picture is `A` in tiles:

# %%
A, B, C = product(8, 12, 16)
s = tensorized(C, mma)
s[A].transform_layout(lambda i, k: [i // T, k // T, i % T, k % T])
s[B].transform_layout(lambda k, j: [k // T, j // T, k % T, j % T])
print(tecomp.lower(s, [A, B, C]).body)
tecomp.Layout.of((8, 16), "float32", lambda i, k: [i // T, k // T, i % T, k % T])

# %% [markdown]
# What the loops compute is not always what the instruction does. The refusal shows both:

# %%
A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
k = te.reduce_axis((0, 8), name="k")
D = te.compute((8, 8), lambda i, j: te.max(A[i, k] + B[k, j], axis=k), name="D")
try:
    tecomp.lower(tensorized(D, mma), [A, B, D])
except tecomp.TecompError as error:
    print(error.message)


# %% [markdown]
# **Exercise.** Give that one an instruction too: the product of tiles in which `max` takes the
# place of the sum and `+` that of the product, as in the longest paths of a graph.

# %%
def answer():
    return mma


def check(answer):
    try:
        s = tensorized(D, answer())
        kernel = tecomp.build(s, [A, B, D])
    except tecomp.TecompError as error:
        raise AssertionError(error.message) from None
    a, b = np.random.default_rng(1).standard_normal((2, 8, 8), np.float32)
    d = np.empty((8, 8), np.float32)
    kernel(a, b, d)
    np.testing.assert_array_equal(d, (a[:, :, None] + b[None]).max(1))
    assert sum(kernel.report().tiles.values()) == 8


# check(answer)

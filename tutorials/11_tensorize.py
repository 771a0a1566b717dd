# %% [markdown]
# # 11. Tensorize: use an instruction of your engine
#
# You will declare an instruction that multiplies small tiles, verify it, replace loops with it,
# and apply it to partial tiles and other layouts. Prerequisites: tutorials 2, 4 and 9. Time: ten
# minutes.
#
# Machines have instructions that execute a whole loop nest: a product of 4x4 tiles, a dot product,
# a copy of a stick. A compiler needs two descriptions of an instruction: what it computes, and how
# it is called.

# %%
import numpy as np

import tecomp
from tecomp import te

T = 4


def tile_product():
    """Definition of the instruction, a tensor expression."""
    a, b = (te.placeholder((T, T), name=name) for name in "ab")
    r = te.reduce_axis((0, T), name="r")
    return te.compute((T, T), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")


# %% [markdown]
# The call is described by statements on operands: one that computes a tile, one that initializes
# it, and one that updates it, for reduction loops outside the tile. Here the statements are loops;
# for a real engine they would be a call, `te.call_extern("mma_4x4", ...)`.

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
# The two descriptions are compared by running them on random values. The next cell causes an error
# on purpose: an index in the wrong order is detected before the intrinsic is used in a schedule:

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
# Now a matrix product. The loops over tiles of `C` are outside, the loops within one tile inside,
# and `tensorize` replaces the outermost of the inner loops with its body:

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
# A `TensorOp` node names the operation and its operands. Whether the loops match the instruction
# is decided on the sets of elements that they read and write. Names, axis order and layouts
# therefore do not matter.
#
# **Predict.** A product of 10 by 13, with a reduction over 16, has partial tiles. How many
# instructions are executed? Do you need to pad the matrices? (The figure below shows the first
# product: the remaining loops and the instruction.)

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
# 3 by 4 tiles, four times each: partial tiles are included, and masked. Elements beyond the end of
# the reduction are read as 0, which does not change a sum. For a maximum this would be incorrect,
# and the schedule is rejected unless the padding holds a suitable value.
#
# An engine requires contiguous tiles. A layout provides them, and the operands follow: their
# strides come from the schedule and not from the intrinsic. The figure shows `A` in tiles:

# %%
A, B, C = product(8, 12, 16)
s = tensorized(C, mma)
s[A].transform_layout(lambda i, k: [i // T, k // T, i % T, k % T])
s[B].transform_layout(lambda k, j: [k // T, j // T, k % T, j % T])
print(tecomp.lower(s, [A, B, C]).body)
tecomp.Layout.of((8, 16), "float32", lambda i, k: [i // T, k // T, i % T, k % T])

# %% [markdown]
# If the loops do not compute what the instruction computes, the error shows both:

# %%
A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
k = te.reduce_axis((0, 8), name="k")
D = te.compute((8, 8), lambda i, j: te.max(A[i, k] + B[k, j], axis=k), name="D")
try:
    tecomp.lower(tensorized(D, mma), [A, B, D])
except tecomp.TecompError as error:
    print(error.message)


# %% [markdown]
# **Exercise.** Declare an instruction for this product of tiles, with `max` in place of the sum
# and `+` in place of the product, as used for longest paths in a graph.

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

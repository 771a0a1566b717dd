# %% [markdown]
# # 4. Layouts: from indices to addresses
#
# You will store a matrix in blocks, map indices to addresses and addresses to indices, inspect the
# padding, see the error for an index map that is not injective, and compile a kernel that writes
# such a layout. Prerequisites: tutorial 1. Time: ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import Layout, te

rows = Layout.of((3, 10), "float32", lambda i, j: [i, j])
blocks = Layout.of((3, 10), "float32", lambda i, j: [j // 4, i, j % 4])
print(blocks)

# %% [markdown]
# A layout is a function from the index of an element to its physical index. `blocks` splits the
# columns into blocks of four, and stores one block after the other: `j // 4` is the block, `j % 4`
# the column within the block. The physical shape is derived from the function: 3 blocks of 3 rows
# of 4 columns. The table lists addresses on the left, followed by the elements stored there.
#
# The same layout as a figure:

# %%
blocks

# %% [markdown]
# Ten columns do not fill three blocks of four, so some addresses hold no element. They are
# padding.
#
# **Predict.** The next layout has 4 blocks of columns, 1000 rows, and 64 elements per block. These
# are 256,000 addresses for 200,000 elements. Which are the 56,000 padding addresses?

# %%
sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
places, condition = sticks.padding
print(places, condition)

assert sticks.padding_count == 56_000

# %% [markdown]
# The answer is a formula, not a list: the addresses whose column, `64 * p0 + p2`, is beyond the
# last one. It is derived with integer sets, in a time that does not depend on the size of the
# tensor.
#
# A layout answers queries in both directions, and packs and unpacks whole arrays:

# %%
print(sticks.place((3, 130)), sticks.offset((3, 130)))
print(sticks.element((2, 3, 2)), sticks.element((3, 0, 8)))
print(sticks.inverse)

x = np.random.default_rng(0).random((1000, 200)).astype(np.float16)
np.testing.assert_array_equal(sticks.unpack(sticks.pack(x)), x)

# %% [markdown]
# Not every function is a layout. Two elements must not have the same address. Injectivity is
# proved, or refuted by two elements that collide. The next cell causes this error on purpose, with
# `% 32` for blocks of 64:

# %%
try:
    Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 32])
except tecomp.LayoutError as error:
    print(error.message)

# %% [markdown]
# The proof considers the function, not its form. The first of the next lines permutes the columns
# by a factor that is coprime to 10, the second by a factor that is not:

# %%
Layout.of((8, 10), "float32", lambda i, j: [i, j * 3 % 10])

try:
    Layout.of((8, 10), "float32", lambda i, j: [i, j * 4 % 10])
except tecomp.LayoutError as error:
    print(error.message)

# %% [markdown]
# In a schedule, `transform_layout` sets the layout of a tensor. The loops follow: they iterate
# over the elements in memory order, and the last block is shorter. Padding is not written unless a
# `pad_value` is given:

# %%
A = te.placeholder((3, 10), name="A")
B = te.compute((3, 10), lambda i, j: A[i, j] + 1.0, name="B")
s = te.create_schedule(B)
s[B].transform_layout(lambda i, j: [j // 4, i, j % 4], pad_value=0.0)
print(tecomp.lower(s, [A, B]))

# %% [markdown]
# The kernel writes an array of the physical shape. `unpack` copies it to row-major order:

# %%
kernel = tecomp.build(s, [A, B], target="cpu")
a = np.arange(30, dtype=np.float32).reshape(3, 10)
b = kernel.empty(B)
kernel(a, b)
print(b.shape, b[2].tolist())

np.testing.assert_array_equal(kernel.unpack(B, b), a + 1)


# %% [markdown]
# **Exercise.** Write the index map that stores a matrix of `(1024, 256)` in tiles of 8 rows and 64
# columns. Each tile is contiguous, and the tiles of one row of tiles follow each other.

# %%
def answer(i, j):
    return [i, j]


def check(answer):
    tiles = Layout.of((1024, 256), "float32", answer)
    assert tiles.physical_shape == (128, 4, 8, 64)
    assert tiles.padding_count == 0
    assert tiles.offset((0, 63)) == 63
    assert tiles.offset((7, 63)) == 8 * 64 - 1
    assert tiles.offset((0, 64)) == 8 * 64


# check(answer)

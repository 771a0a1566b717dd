# %% [markdown]
# # 4. Where does an element live?
#
# You will store a matrix in blocks, ask where an element is and which element is at a place, see
# the padding that appears, meet the error for a map that loses elements, and compile a kernel
# that writes such a layout. You need: tutorial 1. Time: ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import Layout, te

rows = Layout.of((3, 10), "float32", lambda i, j: [i, j])
blocks = Layout.of((3, 10), "float32", lambda i, j: [j // 4, i, j % 4])
print(blocks)

# %% [markdown]
# A layout is a function from the index of an element to its place. `blocks` cuts the columns into
# blocks of four, and stores one block after the other: `j // 4` is the block, `j % 4` the column
# in it. The shape of memory follows from the function: 3 blocks of 3 rows of 4. The table has an
# address on the left, and the elements that are there.
#
# The same as a picture:

# %%
blocks

# %% [markdown]
# Ten columns do not fill three blocks of four, so some places hold no element: they are padding.
#
# **Predict.** The next layout has 4 columns of blocks, 1000 rows, and 64 elements to a block.
# That is 256,000 places for 200,000 elements. Which are the 56,000 empty ones?

# %%
sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
places, condition = sticks.padding
print(places, condition)

assert sticks.padding_count == 56_000

# %% [markdown]
# This is a formula, not a list: the places whose column, `64 * p0 + p2`, is beyond the last one.
# It was derived with integer sets, and takes as long for a tensor of any size.
#
# A layout is asked in both directions, and brings whole arrays to their places and back:

# %%
print(sticks.place((3, 130)), sticks.offset((3, 130)))
print(sticks.element((2, 3, 2)), sticks.element((3, 0, 8)))
print(sticks.inverse)

x = np.random.default_rng(0).random((1000, 200)).astype(np.float16)
np.testing.assert_array_equal(sticks.unpack(sticks.pack(x)), x)

# %% [markdown]
# Not each function is a layout. Two elements must not share a place, which is proved, or refuted
# by two elements that do. Here is the mistake on purpose, `% 32` for blocks of 64:

# %%
try:
    Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 32])
except tecomp.LayoutError as error:
    print(error.message)

# %% [markdown]
# The proof looks at the function and not at its form. In the first of these lines columns are
# mixed by a factor that has no divisor in common with 10, in the second by one that has:

# %%
Layout.of((8, 10), "float32", lambda i, j: [i, j * 3 % 10])

try:
    Layout.of((8, 10), "float32", lambda i, j: [i, j * 4 % 10])
except tecomp.LayoutError as error:
    print(error.message)

# %% [markdown]
# A schedule gives a tensor its layout by `transform_layout`. The loops follow: they run through
# the elements in the order of memory, and the last block is shorter. Nothing is written to
# padding, unless a `pad_value` is given:

# %%
A = te.placeholder((3, 10), name="A")
B = te.compute((3, 10), lambda i, j: A[i, j] + 1.0, name="B")
s = te.create_schedule(B)
s[B].transform_layout(lambda i, j: [j // 4, i, j % 4], pad_value=0.0)
print(tecomp.lower(s, [A, B]))

# %% [markdown]
# The kernel writes an array of the shape of memory; `unpack` brings it back to the order of
# NumPy:

# %%
kernel = tecomp.build(s, [A, B], target="cpu")
a = np.arange(30, dtype=np.float32).reshape(3, 10)
b = kernel.empty(B)
kernel(a, b)
print(b.shape, b[2].tolist())

np.testing.assert_array_equal(kernel.unpack(B, b), a + 1)


# %% [markdown]
# **Exercise.** Write the function that keeps a matrix of `(1024, 256)` in tiles of 8 rows and 64
# columns, so that one tile is contiguous, and the tiles of one row of tiles follow each other.

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

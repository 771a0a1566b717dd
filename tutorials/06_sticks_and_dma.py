# %% [markdown]
# # 6. Sticks and DMA
#
# You will store a matrix in sticks of 128 bytes, as some accelerators do, generate the copy loops
# of a DMA engine, run them, and restickify the matrix. Prerequisites: tutorial 4. Time: fifteen
# minutes.

# %%
import numpy as np

import tecomp
from tecomp import StickLayout, te

sticks = StickLayout((100, 200), "float16")
print(sticks)
print(sticks.device_size, sticks.device_strides, sticks.padding_count)

# %% [markdown]
# A stick is the unit that such a machine loads at once: 64 elements of two bytes along one
# dimension. 200 columns need 4 sticks, the last with 8 elements. The machine also requires the
# rows in whole groups of 64, so 100 rows are padded to 128. `device_size` is the shape in device
# memory.
#
# The figure shows which contiguous parts of a row are in one block, and how much is padding.

# %%
sticks

# %% [markdown]
# A DMA engine copies by loop nests. Each loop has an iteration count, and a stride on the device
# and on the host. Padding is not copied.
#
# **Predict.** How many loop nests copy the matrix, and how do they differ?

# %%
for nest in sticks.dma():
    print(nest)

# %% [markdown]
# Two: one for the 3 full sticks of a row, and one for the remaining 8 elements. All counts are in
# elements. `as_loops()` returns the nests as Python text, so they can be run and compared with the
# result of `pack`:

# %%
full, tail = sticks.dma()
print(full.as_loops())

x = np.random.default_rng(0).integers(0, 500, (100, 200)).astype(np.float16)
host_memory = x.reshape(-1)
device_memory = np.zeros(sticks.num_places, np.float16)
device_tensor_address = host_tensor_address = 0
for nest in (full, tail):
    exec(nest.as_loops())

rows = device_memory.reshape(sticks.device_size)
np.testing.assert_array_equal(rows[1, :100], x[:, 64:128])
np.testing.assert_array_equal(rows[3, :100, :8], x[:, 192:])

# %% [markdown]
# A slice of the matrix has its own loop nests, and so does a matrix in another order on the host.
# The quality of a copy depends on its runs, the segments that are contiguous on both sides:

# %%
print(*sticks.dma(start=(0, 64), extents=(40, 56)))
print(sticks.runs())

assert sticks.runs().count == 100 * 4

# %% [markdown]
# The stick dimension is a choice: a sum along it reduces within sticks, a sum along another
# dimension adds whole sticks. The second form of `StickLayout` takes a padded size and a dimension
# order; the last dimension is the stick dimension. The next cell causes an error on purpose: 100
# rows are not a whole number of sticks.

# %%
try:
    StickLayout((100, 200), "float16", [1, 0])
except tecomp.LayoutError as error:
    print(error.message)

# %% [markdown]
# The message names the remedy: `size` is the unpadded size of the tensor. `relayout` compiles the
# copy from one layout to another. No two elements form a run here, so the copy transposes in
# registers:

# %%
turned = StickLayout((128, 200), "float16", [1, 0], size=(100, 200))
print(turned.device_size, sticks.runs_to(turned))

restick = tecomp.relayout(sticks, turned)
np.testing.assert_array_equal(turned.unpack(restick(sticks.pack(x))), x)

# %% [markdown]
# The values above are small integers, because this machine stores `float16` with one fraction bit
# less, and `pack` converts to this format.
#
# In a schedule, tensors are stored in sticks in the device memory `ddr`, and the cores compute in
# their scratchpads `lx`. `cache_read` and `cache_write` create the copies between them, and the
# report counts them:

# %%
machine = tecomp.Target.load("stick128")
A = te.placeholder((256, 256), "float16", name="A")
B = te.compute((256, 256), lambda i, j: A[i, j] + A[i, j], name="B")
s = te.create_schedule(B)
for tensor in (A, B):
    s[tensor].set_scope("ddr")
    s[tensor].transform_layout(lambda i, j: [j // 64, i, j % 64], loops="logical")
near, out = s.cache_read(A, "lx", [B]), s.cache_write(B, "lx")
outer, _ = s[B].split(B.op.axis[0], nparts=machine.grid["core.x"])
s[B].bind(outer, te.thread_axis("core.x"))
s[near].compute_at(s[B], outer)
s[out].compute_at(s[B], outer)
print(tecomp.build(s, [A, B], target=machine).report())


# %% [markdown]
# **Exercise.** A batch of 5 matrices of 100 by 150 has its sticks along the row index, dimension
# 1. Create the layout, without padding in dimension 2.

# %%
def answer():
    return StickLayout((5, 100, 150), "float16")


def check(answer):
    layout = answer()
    assert layout.shape == (5, 100, 150)
    first = layout.place((0, 0, 0))
    assert layout.place((0, 1, 0)) == (*first[:-1], 1)
    assert layout.num_places == 5 * 128 * 150


# check(answer)

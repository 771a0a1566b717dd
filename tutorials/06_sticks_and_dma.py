# %% [markdown]
# # 6. Sticks and DMA
#
# You will store a matrix in sticks of 128 bytes, as some accelerators do, get the copy loops for
# a DMA engine, run them, and turn the sticks around. You need: tutorial 4. Time: fifteen minutes.

# %%
import numpy as np

import tecomp
from tecomp import StickLayout, te

sticks = StickLayout((100, 200), "float16")
print(sticks)
print(sticks.device_size, sticks.device_strides, sticks.padding_count)

# %% [markdown]
# A stick is what such a machine loads at once: 64 numbers of two bytes, all from one dimension.
# 200 columns are 4 sticks, the last with 8 numbers in it. The machine wants the rows in whole
# groups of 64 too, so 100 rows become 128. `device_size` is the shape in its memory.
#
# In a picture: which pieces of a row lie in one block, and how much is padding.

# %%
sticks

# %% [markdown]
# A DMA engine copies by nests of loops: how often each loop runs, and how far a step of it is on
# the device and on the host. Padding is not copied.
#
# **Predict.** How many nests does it take to copy the matrix, and what differs between them?

# %%
for nest in sticks.dma():
    print(nest)

# %% [markdown]
# Two: one for the 3 whole sticks of a row, and one for the 8 numbers that are left. All counts
# are of elements. `as_loops()` is the same as text, which is Python. So it can be run, and be
# compared with what `pack` makes:

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
# A part of the matrix is copied by nests of its own; so is a matrix that the host has in another
# order. How good a copy is depends on its runs, the pieces that lie together on both sides:

# %%
print(*sticks.dma(start=(0, 64), extents=(40, 56)))
print(sticks.runs())

assert sticks.runs().count == 100 * 4

# %% [markdown]
# The dimension of the sticks is a choice: a sum over it is made within sticks, a sum over another
# one between them. The second form of `StickLayout` takes a padded size, and an order of
# dimensions; sticks are of the last one. A mistake on purpose: 100 rows are not whole sticks.

# %%
try:
    StickLayout((100, 200), "float16", [1, 0])
except tecomp.LayoutError as error:
    print(error.message)

# %% [markdown]
# The message says how. `size` is what the tensor is without padding. `relayout` compiles the copy
# from one layout to the other; there is not one run of two elements in it, and it goes through
# registers:

# %%
turned = StickLayout((128, 200), "float16", [1, 0], size=(100, 200))
print(turned.device_size, sticks.runs_to(turned))

restick = tecomp.relayout(sticks, turned)
np.testing.assert_array_equal(turned.unpack(restick(sticks.pack(x))), x)

# %% [markdown]
# The numbers above are small integers, as this machine keeps `float16` with one bit of the
# fraction less, and `pack` converts to that.
#
# In a schedule, tensors lie in the machine's memory `ddr` in sticks, and cores compute in their
# scratchpads `lx`. Copies between the two are what `cache_read` and `cache_write` make; the
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
# **Exercise.** A batch of 5 matrices of 100 by 150 has its sticks along the rows' index,
# dimension 1. Make the layout, without padding in dimension 2.

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

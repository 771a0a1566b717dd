# %% [markdown]
# # 5. Axis separators and N-d memory
#
# You will write a kernel for a memory with two indices per address, such as GPU images and some
# scratchpads, and see where a compiler usually flattens all indices to one. Prerequisites:
# tutorial 4. Time: ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import te

X = te.placeholder((1, 8, 8, 16), name="X")
Y = te.compute(X.shape, lambda n, h, w, c: te.max(X[n, h, w, c], 0.0), name="Y")

s = te.create_schedule(Y)
print(tecomp.lower(s, [X, Y]))

# %% [markdown]
# A ReLU on an image with 16 channels. Both tensors have four axes, and both buffers have one: the
# memory of most machines is flat, and lowering computes the address `h * 128 + w * 16 + c`.
#
# `te.AXIS_SEPARATOR` in a layout starts a new physical axis. The axes before it are flattened to
# the first index, and the axes after it to the second:

# %%
s[Y].transform_layout(lambda n, h, w, c: [n, h, te.AXIS_SEPARATOR, w, c])
print(tecomp.lower(s, [X, Y]))

# %% [markdown]
# `Y` now has 8 rows of 128 elements, and the rows need not be contiguous in memory.
#
# **Predict.** The next layout also puts blocks of four channels, `c // 4`, before the rows. What
# are the shape of the buffer and its two indices?

# %%
s = te.create_schedule(Y)
s[Y].transform_layout(lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])
print(tecomp.lower(s, [X, Y]))

# %% [markdown]
# 4 blocks of 8 rows are 32 rows, and a row has 8 pixels of 4 channels. A pixel of four channels is
# a texel of a GPU image.
#
# The layout and the physical shape are values that a program can inspect. The next cell does so
# for a smaller image, with a figure; `|` in the formula is the separator:

# %%
layout = tecomp.Layout.of(
    (1, 4, 4, 8), "float32", lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4]
)
print(layout.physical_shape, layout.memory_shape, layout.index_map)
layout

# %% [markdown]
# The `rank` of a target memory is the number of indices per address. `global.texture` of the CPU
# is a table of rows, each aligned to a cache line; it emulates the textures of real devices.

# %%
cpu = tecomp.Target.load("cpu")
print(cpu.memory("global").rank, cpu.memory("global.texture").rank)

s[Y].set_scope("global.texture")
kernel = tecomp.build(s, [X, Y], target=cpu)

x = np.random.default_rng(0).random((1, 8, 8, 16), dtype=np.float32) - 0.5
y = kernel.empty(Y)
kernel(x, y)
print(y.shape)
np.testing.assert_array_equal(kernel.unpack(Y, y), np.maximum(x, 0))

# %% [markdown]
# The next cell causes an error on purpose: the memory without the separator.

# %%
s = te.create_schedule(Y)
s[Y].set_scope("global.texture")
try:
    tecomp.build(s, [X, Y], target=cpu)
except tecomp.TargetError as error:
    print(error.message)

# %% [markdown]
# The cost of a kernel depends on the physical shape: contiguous runs end at the end of a row. The
# same operation on the GPU description, first with whole image lines as rows, then with one texel
# per row:

# %%
gpu = tecomp.Target.load("texture2d")


def report(layout):
    s = te.create_schedule(Y)
    s[Y].transform_layout(layout)
    s[Y].set_scope("global.texture")
    return tecomp.build(s, [X, Y], target=gpu).report().of("global.texture", "write")


lines = report(lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])
texels = report(lambda n, h, w, c: [n, c // 4, h, w, te.AXIS_SEPARATOR, c % 4])
print(lines.runs, lines.longest_run_bytes, texels.runs, texels.longest_run_bytes)

assert lines.bytes == texels.bytes
assert lines.runs < texels.runs


# %% [markdown]
# **Exercise.** A scratchpad has three indices: a block of 8 channels, a row of the image, and the
# position in this row, with its 8 channels contiguous. Write the layout.

# %%
def answer(n, h, w, c):
    return [n, h, w, c]


def check(answer):
    s = te.create_schedule(Y)
    s[Y].transform_layout(answer)
    (store,) = str(tecomp.lower(s, [X, Y])).splitlines()[-1:]
    assert store.split(" = ")[0].strip() == "Y[c_outer, h, w * 8 + c_inner]"


# check(answer)

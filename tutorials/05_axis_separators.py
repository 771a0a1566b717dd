# %% [markdown]
# # 5. Axis separators and N-d memory
#
# You will write a kernel for memory that takes two indices, as images of a GPU and some
# scratchpads do, and see where a compiler usually makes one index of all. You need: tutorial 4.
# Time: ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import te

X = te.placeholder((1, 8, 8, 16), name="X")
Y = te.compute(X.shape, lambda n, h, w, c: te.max(X[n, h, w, c], 0.0), name="Y")

s = te.create_schedule(Y)
print(tecomp.lower(s, [X, Y]))

# %% [markdown]
# An image with 16 channels; negative numbers become 0. Both tensors have four axes, and both
# buffers one: the memory of most machines is flat, and lowering adds up `h * 128 + w * 16 + c`.
#
# `te.AXIS_SEPARATOR` in a layout says that a new axis of memory begins here. The axes before it
# are flattened to the first index, and those behind it to the second:

# %%
s[Y].transform_layout(lambda n, h, w, c: [n, h, te.AXIS_SEPARATOR, w, c])
print(tecomp.lower(s, [X, Y]))

# %% [markdown]
# `Y` has 8 rows of 128 places now, and its rows need not follow each other in memory.
#
# **Predict.** The next layout also puts blocks of four channels, `c // 4`, before the rows. What
# will be the shape of the buffer, and the two indices?

# %%
s = te.create_schedule(Y)
s[Y].transform_layout(lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])
print(tecomp.lower(s, [X, Y]))

# %% [markdown]
# 4 blocks of 8 rows make 32 rows; a row has 8 pixels of 4 channels. A pixel of four channels is a
# texel of an image on a GPU.
#
# The layout and the shape of memory are values, which can be asked. Here for a smaller image,
# with a picture; `|` in the formula is the separator:

# %%
layout = tecomp.Layout.of(
    (1, 4, 4, 8), "float32", lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4]
)
print(layout.physical_shape, layout.memory_shape, layout.index_map)
layout

# %% [markdown]
# A memory of a target says how many indices it takes, its rank. `global.texture` of the processor
# is a table of rows, each of which starts a cache line; it stands for the textures of real
# devices.

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
# One mistake on purpose, the memory without the separator:

# %%
s = te.create_schedule(Y)
s[Y].set_scope("global.texture")
try:
    tecomp.build(s, [X, Y], target=cpu)
except tecomp.TargetError as error:
    print(error.message)

# %% [markdown]
# The cost of a kernel depends on the form of memory: runs of elements that follow each other end
# where a row does. The same operation on the described GPU, once with rows of whole lines of the
# image, once with one texel to a row:

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
# **Exercise.** A scratchpad takes three indices: a block of 8 channels, a row of the image, and
# the places of that row, with its 8 channels side by side. Write the layout.

# %%
def answer(n, h, w, c):
    return [n, h, w, c]


def check(answer):
    s = te.create_schedule(Y)
    s[Y].transform_layout(answer)
    (store,) = str(tecomp.lower(s, [X, Y])).splitlines()[-1:]
    assert store.split(" = ")[0].strip() == "Y[c_outer, h, w * 8 + c_inner]"


# check(answer)

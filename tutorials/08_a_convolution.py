# %% [markdown]
# # 8. A convolution on a photograph
#
# You will detect edges in a photograph, in eight directions and three sizes, and store the result
# in blocks of channels, NCHWc, so that the vectors of the processor are full. Prerequisites:
# tutorials 3 and 4, and the extra `demo`. Time: ten minutes.

# %%
import numpy as np
from matplotlib.cbook import get_sample_data
from PIL import Image

import tecomp
from tecomp import te

with get_sample_data("grace_hopper.jpg") as file:
    photograph = np.asarray(Image.open(file))[60:316, 128:384].astype(np.float32) / 255
image = np.ascontiguousarray(photograph[None])
print(image.shape, "images, rows, columns, colours")
Image.fromarray((255 * photograph).astype(np.uint8))

# %% [markdown]
# A filter is a small image, and the convolution computes at each pixel how well the photograph
# matches it. These filters are brightness gradients. The axis order is that of the photograph,
# NHWC: images, height, width, channels.

# %%
size, filters = 5, 24
angles = 2 * np.pi * np.arange(filters) / 8
widths = 1 + np.arange(filters) // 8
down, across = (each[..., None] for each in np.mgrid[:size, :size] - size // 2)
slopes = np.exp(-(down**2 + across**2) / widths**2) * (
    down * np.sin(angles) + across * np.cos(angles)
)
weights = np.repeat(slopes[:, :, None], 3, axis=2).astype(np.float32)
print(weights.shape, "rows, columns, colours, filters")

_, height, width, colours = image.shape
X, W = te.placeholder(image.shape, name="X"), te.placeholder(weights.shape, name="W")
P = te.compute(
    (1, height + 4, width + 4, colours),
    lambda n, y, x, c: te.if_then_else(
        te.all(y >= 2, y < height + 2, x >= 2, x < width + 2), X[n, y - 2, x - 2, c], 0.0
    ),
    name="P",
)
r, q = (te.reduce_axis((0, size), name=name) for name in "rq")
c = te.reduce_axis((0, colours), name="c")
C = te.compute(
    (1, height, width, filters),
    lambda n, y, x, k: te.sum(P[n, y + r, x + q, c] * W[r, q, c, k], axis=[r, q, c]),
    name="C",
)

# %% [markdown]
# `P` is the photograph, padded with two rows and columns of zeros, because each pixel needs 5 by 5
# input pixels, also at the border. NumPy provides the expected result:

# %%
padded = np.pad(image, ((0, 0), (2, 2), (2, 2), (0, 0)))
windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))
expected = np.einsum("nyxcrq,rqck->nyxk", windows, weights, optimize=True)


def measure(name, s, weights, layout=None):
    kernel = tecomp.build(s, [X, W, C])
    out = np.empty(layout.physical_shape if layout else expected.shape, np.float32)
    kernel(image, weights, out)
    found = layout.unpack(out) if layout else out
    np.testing.assert_allclose(found, expected, atol=1e-4)
    time = kernel.timeit(image, weights, out).min
    operations = 2 * expected.size * size * size * colours
    print(f"{name:8} {1e3 * time:6.2f} ms {operations / time / 1e9:6.1f} GFLOP/s")
    return found


measure("naive", te.create_schedule(C), weights)

# %% [markdown]
# **Predict.** The filters are the last axis of `C` and of `W`, so they are contiguous. A vector
# holds the sums of 8 filters at one pixel. What does a step of the sum read from the photograph,
# and what from `W`? Why does it help to compute several pixels at a time?

# %%
def scheduled(blocked):
    """Keep the sums of eight pixels, each a vector of filters, in registers."""
    s = te.create_schedule(C)
    sums = s.cache_write(C, "local")
    if blocked:
        n, block, y, x, k = s[C].transform_layout(lambda n, y, x, k: [n, k // 8, y, x, k % 8])
        s[W].transform_layout(lambda r, q, c, k: [k // 8, r, q, c, k % 8])
    else:
        n, y, x, k = C.op.axis
        block, k = s[C].split(k, factor=8)
    x, pixel = s[C].split(x, factor=8)
    s[C].reorder(n, block, y, x, pixel, k)
    s[C].unroll(pixel)
    s[C].vectorize(k)
    s[sums].compute_at(s[C], x)
    _, _, pixel, k = sums.op.axis
    s[sums].reorder(*sums.op.reduce_axis, pixel, k)
    s[sums].unroll(pixel)
    s[sums].vectorize(k)
    return s


measure("vectors", scheduled(False), weights)

# %% [markdown]
# One element of the photograph per pixel, and one vector of `W` for all eight pixels.
#
# A tile reads 8 of 24 filters, and writes 8 of 24 channels of some pixels: parts of memory rows,
# with gaps. In NCHWc the block of channels is an outer axis, and the data of one tile are
# contiguous. The next convolution can also load its channels as vectors. The figure shows two rows
# of three pixels:

# %%
tecomp.Layout.of((1, 2, 3, 24), "float32", lambda n, y, x, k: [n, k // 8, y, x, k % 8])

# %% [markdown]
# In the schedule this is one call per tensor. The definition of `C` does not change; loops and
# accesses follow the layout. The weights are packed once:

# %%
packed = tecomp.Layout.of(weights.shape, "float32", lambda r, q, c, k: [k // 8, r, q, c, k % 8])
blocks = tecomp.Layout.of(expected.shape, "float32", lambda n, y, x, k: [n, k // 8, y, x, k % 8])
edges = measure("NCHWc", scheduled(True), packed.pack(weights), blocks)

# %% [markdown]
# The time is nearly the same: 24 filters of this size fit into the first-level cache in either
# layout. With hundreds of channels they do not fit, and the layout becomes decisive.
#
# The next cell causes an error on purpose. An array that is not packed has another shape, and is
# rejected instead of being read in the wrong order:

# %%
kernel = tecomp.build(scheduled(True), [X, W, C])
try:
    kernel(image, weights, np.empty(blocks.physical_shape, np.float32))
except tecomp.TecompError as error:
    print(error.message)

# %% [markdown]
# How does this compare with the automatic schedule of the same definition? The scheduler analyses
# the accesses, recognizes a convolution, and selects tiles for the host CPU:

# %%
library = tecomp.compile(C, [X], constants={W: weights})
np.testing.assert_allclose(library(image), expected, atol=1e-4)
print(f"library  {1e3 * library.timeit(image).min:6.2f} ms")
strength = edges[0].max(axis=-1)
Image.fromarray((255 * (1 - strength / strength.max())).astype(np.uint8))


# %% [markdown]
# **Exercise.** Half of the edge filters would suffice. Change the block size, `block(k)`, so that
# the layout of `C` has as little padding as possible for 20 filters, and vectors still have at
# least four lanes. `padding_count` of the layout is the amount of padding.

# %%
def answer():
    return 8


def check(answer):
    block = answer()
    layout = tecomp.Layout.of(
        (1, 256, 256, 20), "float32", lambda n, y, x, k: [n, k // block, y, x, k % block]
    )
    assert block >= 4
    assert layout.padding_count == 0
    assert layout.physical_shape[1] > 1


# check(answer)

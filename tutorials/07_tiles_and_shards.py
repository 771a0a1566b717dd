# %% [markdown]
# # 7. Tiles, shards and grids
#
# You will partition a matrix into shards for a grid of cores, and the shards into tiles, query
# which core has an element, and inspect the padding of each core. Prerequisites: tutorial 4. Time:
# ten minutes.

# %%
import numpy as np

import tecomp
from tecomp import GridMap, Layout, ShardLayout

layout = ShardLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32))
print(layout)
print(layout.physical_shape)

# %% [markdown]
# 53 rows are distributed over three rows of cores, and 63 columns over two. The shard of each core
# is rounded up to whole tiles of 32 by 32. The text is the notation of tt-mlir: the map from the
# tensor to the grid, the grid, and the memory of each core.
#
# The physical axes are the two grid axes, the two tile axes, and the rows and columns of a tile.
# The figure uses tiles of 4 by 4, so that all elements are visible. The tile shapes of known
# machines are allowed by default; other shapes must be listed in `allowed_tiles`:

# %%
ShardLayout((10, 13), "float32", grid=(3, 2), tile=(4, 4), allowed_tiles=[(4, 4)])

# %% [markdown]
# **Predict.** On which core is element `(20, 40)` of the large matrix, and where in its tile? 53
# rows on three cores are 18 rows per core, and 63 columns on two cores are 32 per core.

# %%
print(layout.place((20, 40)))

assert layout.place((20, 40)) == (1, 1, 0, 0, 20 - 18, 40 - 32)

# %% [markdown]
# The tiles are not full: 18 of 32 rows are used, and 17 on the last row of cores. `core_padding`
# returns the number of missing rows and columns of each core, and the padding positions:

# %%
print(layout.core_padding((0, 0)).condition)
print(layout.core_padding((2, 1)).margins, layout.core_padding((2, 1)).condition)
print(layout.padding_count, "of", layout.num_places)

# %% [markdown]
# The grid of a layout is virtual. A `GridMap` maps each virtual core to a physical core. The next
# cell folds a row of 64 cores to a grid of 8 by 8:

# %%
wide = GridMap.folded((1, 64), (8, 8))
row = ShardLayout((32, 4096), "float32", grid=(1, 64), device=wide, capacity_bytes=1_499_136)
print(row.physical_core((0, 1000)), row.shard_bytes)

# %% [markdown]
# The memory of a core is limited, and a shard must fit. The next cell causes an error on purpose:
# a large matrix on too few cores, whose shards have 64 by 64 tiles:

# %%
try:
    ShardLayout((4096, 4096), "float32", grid=(2, 2), tile=(32, 32), capacity_bytes=1_499_136)
except tecomp.TecompError as error:
    print(error.message)

# %% [markdown]
# What does a copy from eight by eight cores to four by four cost? A run is contiguous on both
# sides. Runs never cross the memory of a core:

# %%
def sharded(cores):
    n = 512 // cores
    return Layout.of(
        (512, 512), "float16", lambda i, j: [i // n, j // n, i % n, j % n], grid_axes=[0, 1]
    )


runs = sharded(8).runs_to(sharded(4))
print(runs)

move = tecomp.relayout(sharded(8), sharded(4))
x = np.random.default_rng(0).random((512, 512)).astype(np.float16)
np.testing.assert_array_equal(sharded(4).unpack(move(sharded(8).pack(x))), x)

# %% [markdown]
# A target creates its preferred layout: on all of its cores, with the tiles of its matrix unit.

# %%
machine = tecomp.Target.load("tensix_wh")
print(machine.grid, ShardLayout.for_target(machine, (512, 1024), "bfloat16"))


# %% [markdown]
# **Exercise.** Store a matrix of 256 rows and 96 columns on a grid of 4 by 1 cores, in tiles of 32
# by 32, without padding, and find the core of element `(200, 50)`.

# %%
def answer():
    return ShardLayout((256, 96), "float32", grid=(3, 1), tile=(32, 32)), (0, 0)


def check(answer):
    layout, core = answer()
    assert layout.shape == (256, 96)
    assert layout.padding_count == 0
    assert layout.physical_shape == (4, 1, 2, 3, 32, 32)
    assert layout.place((200, 50))[:2] == core


# check(answer)

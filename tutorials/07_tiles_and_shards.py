# %% [markdown]
# # 7. Tiles, shards and grids
#
# You will cut a matrix into shards for a grid of cores, and the shards into tiles, ask which core
# has an element, and know how much is padding on each core. You need: tutorial 4. Time: ten
# minutes.

# %%
import numpy as np

import tecomp
from tecomp import GridMap, Layout, ShardLayout

layout = ShardLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32))
print(layout)
print(layout.physical_shape)

# %% [markdown]
# 53 rows on three rows of cores, 63 columns on two. Each core gets as many rows and columns as it
# takes to hold its part, in whole tiles of 32 by 32. The text is the notation of tt-mlir: the map
# from the tensor to the grid, the grid, and what a core has in its memory.
#
# The physical axes are the two of the grid, the two that count tiles, and the rows and columns of
# a tile. In a picture, with tiles of 4 by 4, so that all of it can be seen. The tiles of known
# machines are allowed; others have to be named:

# %%
ShardLayout((10, 13), "float32", grid=(3, 2), tile=(4, 4), allowed_tiles=[(4, 4)])

# %% [markdown]
# **Predict.** On which core is element `(20, 40)` of the large one, and where in its tile? 53
# rows on three cores are 18 rows each, and 63 columns on two are 32 each.

# %%
print(layout.place((20, 40)))

assert layout.place((20, 40)) == (1, 1, 0, 0, 20 - 18, 40 - 32)

# %% [markdown]
# A tile of a core is not full here: 18 of its 32 rows are used, on the last row of cores 17.
# `core_padding` says for each core how many rows and columns of its part are missing, and which
# places hold nothing:

# %%
print(layout.core_padding((0, 0)).condition)
print(layout.core_padding((2, 1)).margins, layout.core_padding((2, 1)).condition)
print(layout.padding_count, "of", layout.num_places)

# %% [markdown]
# The grid of a layout is virtual. A `GridMap` says which core of the machine each of its cores
# is. Here a row of 64 cores is folded to 8 by 8:

# %%
wide = GridMap.folded((1, 64), (8, 8))
row = ShardLayout((32, 4096), "float32", grid=(1, 64), device=wide, capacity_bytes=1_499_136)
print(row.physical_core((0, 1000)), row.shard_bytes)

# %% [markdown]
# A core has a memory of a certain size, and a shard has to fit. One mistake on purpose, a large
# matrix on too few cores, whose shards are 64 by 64 tiles:

# %%
try:
    ShardLayout((4096, 4096), "float32", grid=(2, 2), tile=(32, 32), capacity_bytes=1_499_136)
except tecomp.TecompError as error:
    print(error.message)

# %% [markdown]
# What does it take to go from eight by eight cores to four by four? A run is a piece that lies
# together on both sides. Runs never go from the memory of one core to that of another:

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
# A target makes the layout that it asks for: all of its cores, and tiles of its engine.

# %%
machine = tecomp.Target.load("tensix_wh")
print(machine.grid, ShardLayout.for_target(machine, (512, 1024), "bfloat16"))


# %% [markdown]
# **Exercise.** Store a matrix of 256 rows and 96 columns on a grid of 4 by 1 cores, in tiles of
# 32 by 32, such that no place is padding, and find the core of the element `(200, 50)`.

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

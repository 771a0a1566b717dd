"""Data layouts as index maps: stick, shard and tile layouts, storage formats and notations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.layout.core.layout import FixedTiledLayout, Layout, same_memory
    from tecomp.layout.core.stick_formats import DataFormats, ElementArrangement, name_of_type
    from tecomp.layout.core.stick_layout import Dense, Sparse, SpyreTensorLayout, StickLayout
    from tecomp.layout.dma import DmaNest, Runs
    from tecomp.layout.formats.block_float import BlockFloat
    from tecomp.layout.formats.format import Format
    from tecomp.layout.formats.layout_tags import LayoutTag, layout_tag, layout_tag_of_maps
    from tecomp.layout.formats.registry import (
        BFP8,
        DLFLOAT16,
        FLOAT8_E4M3FN,
        FLOAT8_E5M2,
        INT4,
        UINT4,
        PackedInt,
        SmallFloat,
        storage_format,
    )
    from tecomp.layout.hardware_tiles import amx, crouton, n11c, partitions, vnni
    from tecomp.layout.notations.cute import cute, cute_complement, cute_text
    from tecomp.layout.notations.mlir_affine import map_text, parse_affine_map
    from tecomp.layout.notations.onednn_blocked import blocked, blocked_tag
    from tecomp.layout.notations.scanner import Scanner
    from tecomp.layout.notations.xla import xla, xla_layout, xla_text
    from tecomp.layout.sharding.checks import ALLOWED_TILES
    from tecomp.layout.sharding.shard_maps import collapse_map, merged_dims
    from tecomp.layout.sharding.virtual_grid import GridMap
else:
    __getattr__, __dir__ = lazy_names(__name__)

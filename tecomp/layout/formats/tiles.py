"""How tt-mlir calls what a tile stores."""

from __future__ import annotations

from dataclasses import replace

from tecomp.ir.language.given import is_one_of
from tecomp.layout.formats.block_float import BlockFloat
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.named import BFP2, BFP4, BFP8, storage_format

_SHARED = {"bfp_bf8": BFP8, "bfp_bf4": BFP4, "bfp_bf2": BFP2}
_SHORT = {storage.name: name for name, storage in _SHARED.items()}

BFP_TILES: dict[str, Format] = {
    **{name: replace(storage, name=name) for name, storage in _SHARED.items()},
    **{
        f"bfp_f{bits}": replace(BlockFloat.of(bits, exponent_bits=5), name=f"bfp_f{bits}")
        for bits in (8, 4, 2)
    },
}
"""Block floating point in tiles of 32x32: 16 elements share an exponent of a byte.

Those with bf have exponents of bfloat16, those with f exponents of float16.
"""


def format_named(name: str) -> Format:
    """The format called `name`: one of `BFP_TILES`, or as for `storage_format`.

    Raises:
        LayoutError: there is none.

    >>> format_named("bfp_bf8").units, format_named("bfp8").name, format_named("float16").units
    (1088, 'bfp_bf8', 1)
    """
    called = _SHORT[name] if is_one_of(name, _SHORT) else name
    return BFP_TILES[called] if is_one_of(called, BFP_TILES) else storage_format(called)

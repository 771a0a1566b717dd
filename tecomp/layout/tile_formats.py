"""How tt-mlir calls what a tile stores."""

from __future__ import annotations

from tecomp.ir.dtype import DType
from tecomp.layout.formats import Format

BFP_TILES = {
    f"bfp_{kind}{bits}": Format(f"bfp_{kind}{bits}", DType("uint8"), elements=1024, units=units)
    for bits, units in ((8, 1088), (4, 576), (2, 320))
    for kind in ("f", "bf")
}
"""Block floating point in tiles of 32x32: 16 elements share an exponent of a byte."""


def format_named(name: str) -> Format:
    """The format called `name`: one of `BFP_TILES`, or an element type.

    >>> format_named("bfp_bf8").units, format_named("float16").units
    (1088, 1)
    """
    return BFP_TILES.get(name) or Format.plain(name)

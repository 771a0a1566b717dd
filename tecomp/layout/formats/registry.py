"""Named storage formats."""

from __future__ import annotations

from dataclasses import replace

from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.dtype import SCALARS, DType
from tecomp.layout.formats.block_float import BlockFloat
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.narrow_types import (
    PackedFloat,
    PackedInt,
    SmallFloat,
    SpecialCodes,
    TieBreaking,
)
from tecomp.operations.element_types import element_type

_BYTE = DType("uint8")


def _format_of(dtype: str) -> SmallFloat:
    """Return the format of a floating-point dtype of 8 bits."""
    row = element_type(dtype)
    specials = SpecialCodes.IEEE if row.nonfinite == "IEEE754" else SpecialCodes.FN
    return SmallFloat(
        dtype, _BYTE, exponent=row.exponent_bits, fraction=row.fraction_bits, bias=row.bias,
        specials=specials,
    )


FLOAT8_E4M3FN = _format_of("float8_e4m3fn")
FLOAT8_E5M2 = _format_of("float8_e5m2")
FLOAT8_E4M3FNUZ = SmallFloat(
    "float8_e4m3fnuz", _BYTE, exponent=4, fraction=3, bias=8, specials=SpecialCodes.FNUZ
)
FLOAT8_E5M2FNUZ = SmallFloat(
    "float8_e5m2fnuz", _BYTE, exponent=5, fraction=2, bias=16, specials=SpecialCodes.FNUZ
)
DLFLOAT16 = SmallFloat(
    "dlfloat16", DType("uint16"), exponent=6, fraction=9, bias=31, specials=SpecialCodes.FN,
    ties=TieBreaking.AWAY, denormals=False,
)
BFP8 = BlockFloat.of(8)
BFP4 = BlockFloat.of(4)
BFP2 = BlockFloat.of(2)
INT4 = PackedInt.of(4, signed=True)
UINT4 = PackedInt.of(4, signed=False)
INT2 = PackedInt.of(2, signed=True)
UINT2 = PackedInt.of(2, signed=False)
FLOAT4_E2M1FN = PackedFloat.of("float4_e2m1fn")

NAMED_FORMATS = {
    storage.name: storage
    for storage in (
        FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ, DLFLOAT16,
        BFP8, BFP4, BFP2, INT4, UINT4, INT2, UINT2, FLOAT4_E2M1FN,
    )
}
"""Storage formats by name, besides the dtypes."""


def storage_format(name: str) -> Format:
    """Return the storage format with a given name; dtype names are formats too.

    `dlfloat16` is the 16-bit float of IBM's accelerators: 1 sign bit, 6 exponent bits (bias 31), 9
    fraction bits, no denormals, one code for infinity and NaN (all ones), ties away from 0.

    Raises:
        LayoutError: If there is no such format.

    Source:
        DLFloat16: A. Agrawal et al., DLFloat (ARITH 2019), and the conversions of onnx-mlir's
        NNPA accelerator. Floats of 8 bits: ml_dtypes; OCP 8-bit floating point.

    >>> storage_format("float8_e5m2").encode_array([1.0, 3.3, 1e9]).tolist()
    [60, 67, 124]
    >>> storage_format("bfp8").storage_shape((4, 32, 32))
    (4, 1088)
    """
    if is_one_of(name, NAMED_FORMATS):
        return NAMED_FORMATS[name]
    if is_one_of(name, SCALARS):
        return Format.plain(name)
    raise LayoutError(
        "storage: unknown format `{name}`; available formats: {named}",
        kind="storage-format", name=name,
        named=", ".join(dict.fromkeys((*NAMED_FORMATS, *SCALARS))),
    )


_SHARED = {"bfp_bf8": BFP8, "bfp_bf4": BFP4, "bfp_bf2": BFP2}
_SHORT = {storage.name: name for name, storage in _SHARED.items()}

BFP_TILES: dict[str, Format] = {
    **{name: replace(storage, name=name) for name, storage in _SHARED.items()},
    **{
        f"bfp_f{bits}": replace(BlockFloat.of(bits, exponent_bits=5), name=f"bfp_f{bits}")
        for bits in (8, 4, 2)
    },
}
"""Block floating-point formats for tiles of 32x32: 16 elements share a one-byte exponent.

Formats with `bf` have exponents of bfloat16, formats with `f` exponents of float16.
"""


def format_named(name: str) -> Format:
    """Return the format with a given name: one of `BFP_TILES`, or as by `storage_format`.

    Raises:
        LayoutError: If there is no such format.

    >>> format_named("bfp_bf8").units, format_named("bfp8").name, format_named("float16").units
    (1088, 'bfp_bf8', 1)
    """
    called = _SHORT[name] if is_one_of(name, _SHORT) else name
    return BFP_TILES[called] if is_one_of(called, BFP_TILES) else storage_format(called)

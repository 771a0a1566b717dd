"""Block floating-point formats with shared exponents: bfp8, bfp4 and bfp2."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.compute.define import compute, reduce_axis
from tecomp.compute.intrinsics import cast, clip, reinterpret
from tecomp.compute.operators import if_then_else, select
from tecomp.compute.reduce import max as greatest
from tecomp.compute.reduce import min as lesser
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import as_ints
from tecomp.ir.nodes.dtype import FLOAT32, DType
from tecomp.ir.nodes.expr import Expr, const
from tecomp.layout.formats.format import Format

_FRACTION_BITS = 23
_HIDDEN = 1 << _FRACTION_BITS
_NOT_A_NUMBER = 255


@dataclass(frozen=True)
class BlockFloat(Format):
    """Block floating point: sign and magnitude per element, one exponent per run of `run` elements.

    With m bits of magnitude, code c and exponent e represent c * 2 ** (e - 126 - m). The exponent
    is that of the largest element of the run. Elements are rounded to nearest, ties to even; a
    magnitude that exceeds its bits saturates. There is no -0. Denormals of float32 are flushed to
    zero. Exponent 255 marks runs with infinity or NaN: in these runs a magnitude with only the
    leading bit set is infinity, and a larger one is NaN (with one bit of magnitude: infinity).

    Exponents of 5 bits, also stored in one byte each, represent 2 ** -15 to 2 ** 16. Larger values,
    infinities and NaN saturate to the largest number of the same sign.

    A block contains `elements` elements: the exponents of all its runs, followed by the codes, the
    first code of a byte in its lowest bits. This is the storage of a tile whose physical shape
    orders elements by face (two by two faces of 16 x 16, row-major).

    Attributes:
        bits: Bits of the code of an element, including the sign.
        run: Number of elements that share an exponent.
        exponent_bits: Bits of the exponent, 8 or 5.

    Source:
        blockfloat_common of tt-metal (formats Bfp8_b, Bfp4_b, Bfp2_b, and without `_b` those with
        exponents of 5 bits). That code shifts a magnitude before rounding, so the last bit may
        differ.
    """

    bits: int = 8
    run: int = 16
    exponent_bits: int = 8

    @classmethod
    def of(
        cls, bits: int, *, elements: int = 1024, run: int = 16, exponent_bits: int = 8
    ) -> BlockFloat:
        """Return the block format with a given number of bits per element.

        Args:
            bits: Bits per element: 2, 4 or 8.
            elements: Number of elements per block, such as those of a tile. Default: 32 x 32.
            run: Number of elements that share an exponent.
            exponent_bits: Bits of the exponent, 8 or 5.

        Raises:
            LayoutError: If a bit count is unsupported, or a block is not a multiple of runs and
                bytes.

        >>> [BlockFloat.of(bits).units for bits in (8, 4, 2)]
        [1088, 576, 320]
        """
        numbers = as_ints((bits, elements, run, exponent_bits))
        if numbers is None or not _is_code(*numbers):
            raise LayoutError(
                "block float: invalid combination of {bits!r} bits, blocks of {elements!r} "
                "elements and exponents of {exponent_bits!r} bits for {run!r}; bits must be 2, 4 "
                "or 8, exponent bits 5 or 8, and a block must consist of whole runs and whole "
                "bytes",
                kind="storage-format", bits=bits, elements=elements, exponent_bits=exponent_bits,
                run=run,
            )
        units = elements // run + elements * bits // 8
        name = f"bfp{bits}" if exponent_bits == 8 else f"bfp{bits}_e{exponent_bits}"
        return cls(name, DType("uint8"), elements, units, bits, run, exponent_bits)

    @property
    def values(self) -> DType:
        """float32, which represents all values except for magnitudes below its smallest number."""
        return FLOAT32

    @property
    def _exponents(self) -> int:
        """Number of exponent bytes in a block."""
        return self.elements // self.run

    @property
    def _least(self) -> int:
        """Biased float32 exponent that is stored as 0."""
        return 0 if self.exponent_bits == 8 else 112

    def _encode(self, values: Tensor) -> Tensor:
        """Return the blocks that encode `values`."""
        count = self._blocks(values, self.elements, "elements")
        exponents = self._shared_exponents(values)
        codes = self._packed_codes(values, exponents)
        heads, body = self._exponents, self.units - self._exponents

        def unit(*i: Expr) -> Expr:
            *outer, j = i
            block, index = j // self.units, j % self.units
            return if_then_else(
                index < heads,
                exponents[(*outer, block * heads + index)],
                codes[(*outer, block * body + index - heads)],
            )

        shape = (*values.shape[:-1], count * self.units)
        return compute(shape, unit, name=f"{values.name}_{self.name}")

    def _decode(self, stored: Tensor, dtype: DType) -> Tensor:
        """Return the values of blocks."""
        count = self._blocks(stored, self.units, "units")
        per_byte = 8 // self.bits

        def value(*i: Expr) -> Expr:
            *outer, j = i
            start, index = j // self.elements * self.units, j % self.elements
            exponent = stored[(*outer, start + index // self.run)]
            byte = stored[(*outer, start + self._exponents + index // per_byte)]
            shift = cast(index % per_byte * self.bits, "uint32")
            return cast(self._value(cast(byte, "uint32") >> shift, exponent), dtype)

        shape = (*stored.shape[:-1], count * self.elements)
        return compute(shape, value, name=f"{stored.name}_values")

    def _shared_exponents(self, values: Tensor) -> Tensor:
        run = reduce_axis((0, self.run), name="run")

        def exponent(*i: Expr) -> Expr:
            *outer, j = i
            bits = _bits(values[(*outer, j * self.run + run)])
            biased = (bits >> _u32(_FRACTION_BITS)) & _u32(255)
            if self._least:
                biased = clip(biased, self._least, self._least + 31) - _u32(self._least)
            return greatest(cast(biased, "uint8"), axis=run)

        shape = (*values.shape[:-1], values.shape[-1] // self.run)
        return compute(shape, exponent, name=f"{values.name}_exponents")

    def _packed_codes(self, values: Tensor, exponents: Tensor) -> Tensor:
        per_byte = 8 // self.bits

        def byte(*i: Expr) -> Expr:
            *outer, j = i
            packed = _u32(0)
            for k in range(per_byte):
                index = j * per_byte + k
                shared = cast(exponents[(*outer, index // self.run)], "uint32") + _u32(self._least)
                code = self._code(_bits(values[(*outer, index)]), shared)
                packed = packed | (code << _u32(k * self.bits))
            return cast(packed, "uint8")

        shape = (*values.shape[:-1], values.shape[-1] // per_byte)
        return compute(shape, byte, name=f"{values.name}_codes")

    def _code(self, bits: Expr, shared: Expr) -> Expr:
        magnitude_bits = self.bits - 1
        exponent = (bits >> _u32(_FRACTION_BITS)) & _u32(255)
        fraction = bits & _u32(_HIDDEN - 1)
        significand = select(exponent == _u32(0), _u32(0), fraction | _u32(_HIDDEN))
        # All bits are shifted out from 25 on, so larger shifts are equivalent.
        shift = lesser(shared - exponent + _u32(24 - magnitude_bits), _u32(25))
        half = (_u32(1) << (shift - _u32(1))) - _u32(1)
        rounded = (significand + half + ((significand >> shift) & _u32(1))) >> shift
        max_code = _u32((1 << magnitude_bits) - 1)
        magnitude = lesser(rounded, max_code)
        if self._least:
            magnitude = select(exponent > shared, max_code, magnitude)
        else:
            top = 1 << (magnitude_bits - 1)
            special = select(fraction == _u32(0), _u32(top), _u32(top | top >> 1))
            magnitude = select(exponent == _u32(_NOT_A_NUMBER), special, magnitude)
        sign = select(magnitude == _u32(0), _u32(0), bits >> _u32(31))
        return magnitude | (sign << _u32(magnitude_bits))

    def _value(self, code: Expr, exponent: Expr) -> Expr:
        magnitude_bits = self.bits - 1
        magnitude = code & _u32((1 << magnitude_bits) - 1)
        top = 1 << (magnitude_bits - 1)
        shared = cast(exponent, "uint32")
        scale = reinterpret("float32", (shared + _u32(self._least)) << _u32(_FRACTION_BITS))
        ratio = cast(cast(magnitude, "int32"), FLOAT32) * const(1 / top, FLOAT32)
        bits = reinterpret("uint32", ratio * scale)
        sign = ((code >> _u32(magnitude_bits)) & _u32(1)) << _u32(31)
        if not self._least:
            is_top = shared == _u32(_NOT_A_NUMBER)
            bits = select(is_top, _top_value(magnitude, top), bits)
        return reinterpret("float32", bits | sign)


def _is_code(bits: int, elements: int, run: int, exponent_bits: int) -> bool:
    """Return whether the bit counts are supported and a block is a multiple of runs and bytes."""
    if bits not in (2, 4, 8) or exponent_bits not in (5, 8) or min(run, elements) < 1:
        return False
    return elements % run == 0 and elements * bits % 8 == 0


def _top_value(magnitude: Expr, top: int) -> Expr:
    """Return the float32 bits of a magnitude in a run with infinity or NaN."""
    scaled = cast(cast(magnitude, "int32"), FLOAT32) * const(1 / top, FLOAT32)
    finite = reinterpret("uint32", scaled * const(2.0**127, FLOAT32) * const(2.0, FLOAT32))
    return select(magnitude > _u32(top), _u32(0x7FC00000), finite)


def _bits(value: Expr) -> Expr:
    return reinterpret("uint32", cast(value, FLOAT32))


def _u32(value: int) -> Expr:
    return const(value, "uint32")

"""Tile layouts of known matrix units."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.errors import LayoutError
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.core.layout import Layout
from tecomp.poly.maps.tracing import AXIS_SEPARATOR

_WORD = 4


def n11c(shape: Sequence[int], dtype: str, chunk: int = 1024) -> Layout:
    """Build a layout with chunks of channels as rows of a two-dimensional memory.

    Args:
        shape: Shape (n, h, w, c).
        dtype: Dtype of the elements.
        chunk: Number of channels per row.

    >>> n11c((1, 16, 8, 2048), "int8").memory_shape
    (256, 1024)
    """
    _check_rank("n11c", shape, "(n, h, w, c)")
    return Layout.of(
        shape, dtype,
        lambda n, h, w, c: [n, h, w, c // chunk, AXIS_SEPARATOR, c % chunk],
    )


def crouton(shape: Sequence[int], dtype: str) -> Layout:
    """Build a layout with blocks of 8 rows, 4 columns and 32 channels; column pairs interleave.

    Args:
        shape: Shape (n, h, w, c).
        dtype: Dtype of the elements; a block takes 2 KiB for 2-byte dtypes.

    Source:
        TVM, the layout `nhwc-8h2w32c2w` of its operators for Hexagon.

    >>> crouton((1, 16, 8, 64), "float16").memory_shape
    (8, 1024)
    """
    _check_rank("crouton", shape, "(n, h, w, c)")
    return Layout.of(
        shape, dtype,
        lambda n, h, w, c: [
            n, h // 8, w // 4, c // 32, AXIS_SEPARATOR, h % 8, w % 4 // 2, c % 32, w % 2
        ],
    )


def vnni(shape: Sequence[int], dtype: str) -> Layout:
    """Build the layout of the right operand of dot products: groups of 4 bytes along the depth.

    Args:
        shape: Shape (k, n), with optional leading axes.
        dtype: Dtype of the elements, 1 or 2 bytes wide.

    >>> vnni((64, 16), "bfloat16").place((5, 3))
    (2, 3, 1)
    """
    group = _group("vnni", shape, dtype)
    return Layout.of(
        shape, dtype, lambda *i: [*i[:-2], i[-2] // group, i[-1], i[-2] % group], pad_value=0
    )


def amx(shape: Sequence[int], dtype: str) -> Layout:
    """Build the layout of the right operand of AMX: tiles of 16 rows of 64 bytes.

    A row holds groups of 4 bytes along k, as in `vnni`.

    Args:
        shape: Shape (k, n), with optional leading axes.
        dtype: Dtype of the elements, 1 or 2 bytes wide.

    Source:
        Intel 64 and IA-32 Architectures Software Developer's Manual, chapter "Advanced Matrix
        Extensions".

    >>> amx((64, 16), "bfloat16").place((5, 3))
    (0, 0, 2, 3, 1)
    """
    group = _group("amx", shape, dtype)
    return Layout.of(
        shape, dtype,
        lambda *i: [
            *i[:-2], i[-2] // (16 * group), i[-1] // 16,
            i[-2] // group % 16, i[-1] % 16, i[-2] % group,
        ],
        pad_value=0,
    )


def partitions(shape: Sequence[int], dtype: str, count: int = 128) -> Layout:
    """Build a layout that distributes rows cyclically over the partitions of a 2-d memory.

    Args:
        shape: Shape (rows, columns).
        dtype: Dtype of the elements.
        count: Number of partitions of the memory.

    Source:
        AWS Neuron, NKI programming model: SBUF is (partition, free).

    >>> partitions((256, 256), "float32").place((200, 17))
    (72, 1, 17)
    """
    _check_rank("partitions", shape, "(rows, columns)")
    return Layout.of(
        shape, dtype, lambda i, j: [i % count, AXIS_SEPARATOR, i // count, j]
    )


def _group(where: str, shape: Sequence[int], dtype: str) -> int:
    width = DType(dtype).bytes
    if width not in (1, 2):
        raise LayoutError(
            "{where}: elements of {dtype} are {width} bytes wide, but groups have 4 bytes; use a "
            "dtype of 1 or 2 bytes",
            kind="storage-format", where=where, dtype=dtype, width=width,
        )
    if len(shape) < 2:
        raise LayoutError(
            "{where}: the shape {shape} must have two axes (k, n); pass a matrix",
            kind="storage-format", where=where, shape=list(shape),
        )
    return _WORD // width


def _check_rank(where: str, shape: Sequence[int], axes: str) -> None:
    if len(shape) != axes.count(",") + 1:
        raise LayoutError(
            "{where}: expected a shape with the axes {axes}, got {shape}",
            kind="storage-format", where=where, axes=axes, shape=list(shape),
        )
